// step_time_fit.hpp - what part of a step's time comes from its load, learned from steps as they are seen.
//
// Least squares of T = fixed + per_token * M over steps that fade with age. Leaves out which steps are worth a look.
#pragma once

#include <optional>

#include "core/units.hpp"
#include "stats/step_time.hpp"

namespace balanceroute {

// StepTimeFit learns the line of a group's step time from pairs of envelope and time.
//   Units    tokens and milliseconds.
//   Memory   a pair counts for half of what it did after kHalfLife more pairs.
//   Silence  no line while what load adds to the mean step is not known to kSureShare of that step: loads that hardly
//            differ say nothing about their price.
//   Threads  not synchronised.
class StepTimeFit {
 public:
  static constexpr double kHalfLife = 1000;
  static constexpr double kSureShare = 0.1;

  void record(Tokens envelope, double milliseconds);

  // Both parts at least 0.
  [[nodiscard]] std::optional<StepTime> line() const;

 private:
  double weight_ = 0;
  double weight_of_squares_ = 0;  // of the pairs' weights
  double mean_load_ = 0;
  double mean_ms_ = 0;
  // Sums of products of deviations from the means.
  double load_load_ = 0;
  double load_ms_ = 0;
  double ms_ms_ = 0;
};

}  // namespace balanceroute
