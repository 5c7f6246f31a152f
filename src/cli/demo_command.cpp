// demo_command.cpp - `balanceroute demo`: see what each policy costs, in one command.
#include <fmt/format.h>

#include <iostream>

#include "cli/commands.hpp"
#include "cli/demo.hpp"
#include "cli/output_file.hpp"
#include "config/flags.hpp"

namespace balanceroute::cli {
namespace {

class DemoCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json, params_.html}); !writable) return writable;
    std::cerr << fmt::format("{} workers with {} slots, load {}, {} s of arrivals for each policy\n", params_.workers,
                             params_.slots, params_.load, params_.seconds);
    const auto runs = run_demo(params_, [](const DemoSetup& setup, const std::string& dashboard) {
      std::cerr << fmt::format("running {}, {}; dashboard: {}\n", setup.policy, setup.dialect, dashboard);
    });
    if (!runs) return run_failed(runs.error());
    words_beside({params_.json, params_.html}) << demo_table(*runs) << '\n' << demo_comparison(*runs);
    if (const auto written = write_output(params_.json, demo_json(*runs)); !written) return written;
    if (const auto written = write_output(params_.html, demo_html(params_, *runs)); !written) return written;
    return judge(*runs);
  }

 private:
  static std::expected<void, Failure> judge(const std::vector<DemoRun>& runs) {
    for (const DemoRun& run : runs) {
      if (run.clients.errors > 0) {
        const auto& some = run.clients.first_errors;
        return run_failed(fmt::format("{}, {}: {} of {} requests failed{}", run.setup.policy, run.setup.dialect,
                                      run.clients.errors, run.clients.requests,
                                      some.empty() ? "" : ", the first: " + some.front()));
      }
    }
    return {};
  }

  DemoParams params_;
};

}  // namespace

std::unique_ptr<Command> make_demo_command() {
  return std::make_unique<DemoCommand>();
}

}  // namespace balanceroute::cli
