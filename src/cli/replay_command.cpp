// replay_command.cpp - `balanceroute replay`: a trace as real traffic to any OpenAI-compatible server.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "config/flags.hpp"
#include "net/server.hpp"
#include "replay/replay.hpp"

namespace balanceroute::cli {
namespace {

class ReplayCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    add_flags(app, [this](ParamVisitor& visitor) {
      params_.visit_params(visitor);
      visitor.text({"json", "File for the result as JSON."}, json_);
    });
  }

  std::expected<void, Failure> run() override {
    const auto trace = replay::load_trace(params_);
    if (!trace) return bad_usage(trace.error());
    net::raise_descriptor_limit();
    const net::SteadyClock clock;
    const auto result = replay::Replay{params_, clock}.run(*trace);
    if (!result) return run_failed(result.error());
    const std::string json = replay::to_json(*result) + "\n";
    std::cout << json;
    if (const auto written = write_output(json_, json); !written) return written;
    for (const std::string& error : result->first_errors) std::cerr << "error: " << error << '\n';
    if (result->completed > 0 || result->requests == 0) return {};
    return run_failed(fmt::format("none of {} requests completed", result->requests));
  }

 private:
  replay::ReplayParams params_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> make_replay_command() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace balanceroute::cli
