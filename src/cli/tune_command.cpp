// tune_command.cpp - `tune`: the settings of br_h that suit a trace and a fleet.
#include <functional>
#include <memory>
#include <ostream>
#include <thread>

#include "cli/command.hpp"
#include "cli/commands.hpp"
#include "cli/output_file.hpp"
#include "cli/progress_line.hpp"
#include "config/flags.hpp"
#include "sim/tune_params.hpp"
#include "sim/tune_report.hpp"
#include "sim/tuning.hpp"

namespace balanceroute::cli {
namespace {

class TuneCommand final : public Command {
 public:
  void declare(CLI::App& app) override { add_flags(app, params_); }

  std::expected<void, Failure> run() override {
    if (auto writable = check_outputs({params_.json, params_.html}); !writable) return writable;
    const auto tuned = search();
    if (!tuned) return bad_usage(tuned.error());
    if (auto written = write_output(params_.json, sim::tune_json(*tuned)); !written) return written;
    if (auto written = write_output(params_.html, sim::tune_html(*tuned)); !written) return written;
    words_beside({params_.json, params_.html}) << sim::tune_table(*tuned);
    return {};
  }

 private:
  [[nodiscard]] std::expected<sim::Tuned, std::string> search() const {
    ProgressLine progress{"runs"};
    return sim::tune(params_, std::thread::hardware_concurrency(), std::ref(progress));
  }

  sim::TuneParams params_;
};

}  // namespace

std::unique_ptr<Command> make_tune_command() {
  return std::make_unique<TuneCommand>();
}

}  // namespace balanceroute::cli
