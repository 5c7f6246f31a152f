// simulate_command.cpp - `simulate`: how policies would have served a recorded stream of requests.
#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <thread>
#include <utility>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/progress_line.hpp"
#include "config/flags.hpp"
#include "sim/experiment.hpp"
#include "sim/report.hpp"
#include "sim/simulate_params.hpp"

namespace balanceroute::cli {
namespace {

std::vector<sim::Run> make_runs(const sim::Experiment& experiment) {
  ProgressLine progress{"runs"};
  return experiment.run(std::thread::hardware_concurrency(), std::ref(progress));
}

class SimulateCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json, params_.html}); !writable) return writable;
    const auto experiment = sim::Experiment::prepare(params_);
    if (!experiment) return bad_usage(experiment.error());
    const std::vector<sim::Run> runs = make_runs(*experiment);
    if (auto written = write_output(params_.json, sim::json_report(*experiment, runs)); !written) return written;
    if (!params_.html.empty()) {
      if (auto written = write_output(params_.html, sim::html_report(*experiment, runs)); !written) return written;
    }
    words_beside({params_.json, params_.html}) << sim::table_report(*experiment, runs);
    return {};
  }

 private:
  sim::SimulateParams params_;
};

}  // namespace

std::unique_ptr<Command> make_simulate_command() {
  return std::make_unique<SimulateCommand>();
}

}  // namespace balanceroute::cli
