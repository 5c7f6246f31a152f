// predict_command.cpp - `predict eval`: how well predictors would have foretold recorded answers.
#include <array>
#include <ostream>

#include "cli/command_group.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "config/flags.hpp"
#include "sim/prediction_study.hpp"

namespace balanceroute::cli {
namespace {

class PredictEval final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json}); !writable) return writable;
    const auto study = sim::study_predictions(params_);
    if (!study) return bad_usage(study.error());
    if (auto written = write_output(params_.json, sim::prediction_json(*study)); !written) return written;
    words_beside({params_.json}) << sim::prediction_table(*study);
    return {};
  }

 private:
  sim::PredictionParams params_;
};

std::unique_ptr<Command> make_predict_eval() {
  return std::make_unique<PredictEval>();
}

constexpr auto kCommands = std::to_array<CommandEntry>({
    {"eval", "Say how well predictors would have foretold the answers of a history or a trace.", make_predict_eval},
});

}  // namespace

std::unique_ptr<Command> make_predict_command() {
  return std::make_unique<CommandGroup>(kCommands);
}

}  // namespace balanceroute::cli
