// explain_command.cpp - `explain`: what the core decides on a fleet's state, and every score that went into it.
#include <memory>
#include <ostream>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "config/flags.hpp"
#include "config/yaml_reader.hpp"
#include "explain/explain_params.hpp"
#include "explain/explanation.hpp"
#include "explain/explanation_report.hpp"
#include "explain/fleet_state_json.hpp"

namespace balanceroute::cli {
namespace {

class ExplainCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json}); !writable) return writable;
    const bool from_input = params_.snapshot == "-";
    const auto text = read_config_file(from_input ? "/dev/stdin" : params_.snapshot, explain::kLargestSnapshot);
    if (!text) return bad_usage(text.error().text());
    auto state = explain::read_fleet_state(*text, from_input ? "standard input" : params_.snapshot);
    if (!state) return bad_usage(state.error());
    if (!params_.policy.empty()) {
      state->policy = {};
      state->policy.name = params_.policy;
    }
    const auto found = explain::explain(*state);
    if (!found) return bad_usage(params_.snapshot + ": " + found.error());
    if (auto written = write_output(params_.json, explain::explanation_json(*found)); !written) return written;
    words_beside({params_.json}) << explain::explanation_text(*found);
    return {};
  }

 private:
  explain::ExplainParams params_;
};

}  // namespace

std::unique_ptr<Command> make_explain_command() {
  return std::make_unique<ExplainCommand>();
}

}  // namespace balanceroute::cli
