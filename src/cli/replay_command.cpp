// replay_command.cpp - `balanceroute replay`: a trace as real traffic to any OpenAI-compatible server.
#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/progress_line.hpp"
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
    if (const auto writable = check_outputs({json_}); !writable) return writable;
    if (params_.api_key.empty()) params_.api_key = key_of_environment();
    const auto result = replayed(*trace);
    if (!result) return run_failed(result.error());
    words_beside({json_}) << replay::to_table(*result);
    if (const auto written = write_output(json_, replay::to_json(*result) + "\n"); !written) return written;
    for (const std::string& error : result->first_errors) std::cerr << "error: " << error << '\n';
    if (result->completed > 0 || result->requests == 0) return {};
    return run_failed(fmt::format("none of {} requests completed", result->requests));
  }

 private:
  // A key on the command line is seen by everyone on the machine, one in the environment is not.
  static std::string key_of_environment() {
    const char* key = std::getenv("OPENAI_API_KEY");
    return key == nullptr ? "" : key;
  }

  std::expected<replay::ReplayResult, std::string> replayed(const trace::Trace& trace) const {
    const std::size_t all = trace.requests.size();
    ProgressLine progress{"requests answered"};
    replay::ReplayHooks hooks;
    hooks.request_ended = [&](std::size_t ended) {
      if (ended * kTellings / all != (ended - 1) * kTellings / all) progress(ended, all);
    };
    const net::SteadyClock clock;
    return replay::Replay{params_, clock}.run(trace, hooks);
  }

  static constexpr std::size_t kTellings = 200;  // a line for each request would be the slowest part

  replay::ReplayParams params_;
  std::string json_;
};

}  // namespace

std::unique_ptr<Command> make_replay_command() {
  return std::make_unique<ReplayCommand>();
}

}  // namespace balanceroute::cli
