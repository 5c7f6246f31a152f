// calibrate_command.cpp - `calibrate`: what measured steps say of load as a measure.
#include <memory>
#include <ostream>

#include "calibrate/calibrate_params.hpp"
#include "calibrate/calibration.hpp"
#include "calibrate/calibration_report.hpp"
#include "calibrate/step_samples.hpp"
#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "config/flags.hpp"

namespace balanceroute::cli {
namespace {

class CalibrateCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json}); !writable) return writable;
    const auto samples = calibrate::read_step_samples(params_.steps);
    if (!samples) return bad_usage(samples.error());
    const calibrate::Calibration found = calibrate::calibrate(*samples);
    if (auto written = write_output(params_.json, calibrate::calibration_json(found)); !written) return written;
    words_beside({params_.json}) << calibrate::calibration_text(found);
    return {};
  }

 private:
  calibrate::CalibrateParams params_;
};

}  // namespace

std::unique_ptr<Command> make_calibrate_command() {
  return std::make_unique<CalibrateCommand>();
}

}  // namespace balanceroute::cli
