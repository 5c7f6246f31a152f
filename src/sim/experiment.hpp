// experiment.hpp - many runs over one trace: every combination of policies, sizes, loads and seeds.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "policy/policy.hpp"
#include "policy/policy_params.hpp"
#include "sim/run_meter.hpp"
#include "sim/simulate_params.hpp"
#include "sim/trajectory.hpp"
#include "stats/step_table.hpp"
#include "trace/stationary_law.hpp"
#include "trace/statistics.hpp"
#include "trace/trace.hpp"

namespace balanceroute::sim {

// Variant is one way to route that an experiment compares.
struct Variant {
  std::string label;      // tells it from the others in reports
  PolicyParams policy;    // complete
  std::string predictor;  // that the policy asks; empty: it asks none
};

// Run is one simulation: what was asked and what came out.
struct Run {
  std::size_t variant = 0;  // position in Experiment::variants()
  std::size_t workers = 0;
  double load = 0;
  std::uint64_t seed = 0;
  RunResult result;
  std::optional<PredictionReport> prediction{};  // of the whole run, if the policy predicts
  std::optional<Trajectory> trajectory{};        // of the first group, if a report is to draw it
  std::chrono::duration<double> took{0};         // of a real clock
};

// Experiment makes the runs of SimulateParams.
//   Common chance  runs that differ only in their variant see the same requests, arrivals and start.
//   Determinism    results do not depend on how many threads make them (`took` aside).
//   Order          by workers, then load, then variant, then seed, each as given.
class Experiment {
 public:
  // Reads the trace; one message if it or the settings cannot be used. Compares the policies that `params` lists.
  [[nodiscard]] static std::expected<Experiment, std::string> prepare(const SimulateParams& params);
  // The same for other ways to route than those.
  [[nodiscard]] static std::expected<Experiment, std::string> prepare(const SimulateParams& params,
                                                                      std::vector<Variant> variants);

  // `finished` is told how many runs are done, by one thread at a time.
  using Progress = std::function<void(std::size_t finished, std::size_t all)>;
  [[nodiscard]] std::vector<Run> run(std::size_t threads, const Progress& progress = {}) const;

  [[nodiscard]] const SimulateParams& params() const { return params_; }
  [[nodiscard]] std::span<const Variant> variants() const { return variants_; }
  [[nodiscard]] const trace::Trace& trace() const { return trace_; }
  [[nodiscard]] const trace::LengthStatistics& lengths() const { return lengths_; }

 private:
  Experiment(const SimulateParams& params, std::vector<Variant> variants, trace::Trace trace);

  [[nodiscard]] std::vector<Run> planned() const;
  void simulate(Run& run) const;
  [[nodiscard]] bool draws(const Run& run) const;
  [[nodiscard]] std::size_t points_of_trajectory(std::size_t workers) const;

  SimulateParams params_;
  std::vector<Variant> variants_;
  trace::Trace trace_;
  trace::LengthStatistics lengths_;
  trace::StationaryLaw law_;
  std::shared_ptr<const StepTable> step_table_;  // if steps were measured
};

}  // namespace balanceroute::sim
