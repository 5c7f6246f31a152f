// check_command.cpp - `balanceroute check`: whether a live fleet is what the configuration says.
#include <fmt/format.h>

#include <algorithm>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/serve_config.hpp"
#include "proxy/fleet_check.hpp"

namespace balanceroute::cli {
namespace {

class CheckCommand final : public Command {
 public:
  void declare(CLI::App& app) override { config_.declare(app); }

  std::expected<void, Failure> run() override {
    const auto loaded = config_.load();
    if (!loaded) return std::unexpected(loaded.error());
    const auto keys = proxy::load_keys(loaded->params);
    if (!keys) return bad_usage(keys.error());
    const auto findings = proxy::check_fleets(loaded->params, *keys);
    print(findings);
    const auto wrong = std::ranges::count(findings, proxy::Verdict::wrong, &proxy::Finding::verdict);
    if (wrong == 0) return {};
    return run_failed(
        fmt::format("{} finding{} must be put right before this fleet is routed to", wrong, wrong == 1 ? "" : "s"));
  }

 private:
  static void print(const std::vector<proxy::Finding>& findings) {
    std::size_t width = 0;
    for (const auto& finding : findings) width = std::max(width, finding.where.size());
    for (const auto& finding : findings) {
      std::cout << fmt::format("{:<6} {:<{}}  {}\n", proxy::to_string(finding.verdict), finding.where, width,
                               finding.what);
      if (!finding.advice.empty()) std::cout << fmt::format("{:<6} {:<{}}  -> {}\n", "", "", width, finding.advice);
    }
  }

  ServeConfig config_;
};

}  // namespace

std::unique_ptr<Command> make_check_command() {
  return std::make_unique<CheckCommand>();
}

}  // namespace balanceroute::cli
