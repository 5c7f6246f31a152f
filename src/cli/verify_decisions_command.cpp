// verify_decisions_command.cpp - `balanceroute verify-decisions LOG`: does the core decide again what it decided live?
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <iostream>

#include "cli/commands.hpp"
#include "proxy/decision_check.hpp"

namespace balanceroute::cli {
namespace {

class VerifyDecisionsCommand final : public Command {
 public:
  void declare(CLI::App& app) override {
    app.add_option("log", path_, "File that the setting decision_log.path of a fleet named.")->required();
  }

  std::expected<void, Failure> run() override {
    const auto report = proxy::check_decisions(path_);
    if (!report) return bad_usage(report.error());
    if (report->difference) return run_failed(fmt::format("{}: {}", path_, *report->difference));
    std::cout << fmt::format(
                     "fleet {}, {}: {} events of {} requests; all {} admissions of {} rounds are decided again\n",
                     report->fleet, report->policy, report->events, report->requests, report->admissions,
                     report->rounds)
              << "the log ends " << words_for(report->end) << '\n';
    return {};
  }

 private:
  static std::string_view words_for(std::string_view end) {
    if (end == "stop") return "where the router stopped";
    if (end == "limit") return "at its size limit";
    return "within the run";
  }

  std::string path_;
};

}  // namespace

std::unique_ptr<Command> make_verify_decisions_command() {
  return std::make_unique<VerifyDecisionsCommand>();
}

}  // namespace balanceroute::cli
