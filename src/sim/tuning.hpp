// tuning.hpp - which setting of br_h suits a trace and a fleet: every combination on common requests, then the best one
// again on others.
//
// The best of many on the same seeds is partly luck, and its lead there no measure of it: what is told of it against
// the default is from seeds that did not choose it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "sim/experiment.hpp"
#include "sim/objective.hpp"
#include "sim/tune_params.hpp"
#include "stats/paired_difference.hpp"

namespace balanceroute::sim {

// Setting is one point of the map.
struct Setting {
  double beta = 0;
  double gamma = 0;
  std::int64_t horizon_steps = 0;
  std::int64_t r_max = 0;

  friend bool operator==(const Setting&, const Setting&) = default;
};

// What one setting reached on the seeds of the search.
struct Trial {
  Setting setting;
  MeanInterval value;   // of the objective
  MeanInterval change;  // against the default, percent
  bool non_stationary = false;
};

// Tuned is the outcome.
struct Tuned {
  TuneParams params;
  std::string trace_name;
  trace::LengthStatistics lengths;
  std::vector<Trial> trials;  // by horizon, r_max, gamma, beta as given; the default last if it is none of them
  std::size_t standard = 0;   // the default's
  std::size_t best = 0;

  // On seeds that did not choose it, in the objective: how much better it is; negative is worse.
  MeanInterval gain_on_default;
  MeanInterval gain_on_least_tokens;

  [[nodiscard]] const Objective& objective() const { return objective_of(params.objective, params.load); }
  [[nodiscard]] bool default_is_best() const { return best == standard; }
  // Whether the best one is better than the default beyond chance.
  [[nodiscard]] bool sure() const {
    return gain_on_default.half_width && gain_on_default.mean > *gain_on_default.half_width;
  }
};

// One message if trace or settings cannot be used. Results do not depend on the number of threads.
[[nodiscard]] std::expected<Tuned, std::string> tune(const TuneParams& params, std::size_t threads,
                                                     const Experiment::Progress& progress = {});

// What to put into the configuration file for the best setting.
[[nodiscard]] std::string config_lines(const Tuned& tuned);

}  // namespace balanceroute::sim
