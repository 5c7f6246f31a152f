// power_model.hpp - what an accelerator draws while its group steps: a model of the literature, not a measurement.
//
// P(u) = idle + (peak - idle) * u^0.7, where u is a worker's load over the envelope. Because the power is concave in u,
// a balanced group draws more in each step; it saves energy by being done sooner. Source: BF-IO (arXiv 2601.17855).
#pragma once

#include <cmath>
#include <span>

#include "core/units.hpp"

namespace balanceroute::sim {

inline constexpr double kIdleWatts = 100;
inline constexpr double kPeakWatts = 400;
inline constexpr double kPowerExponent = 0.7;

[[nodiscard]] inline double worker_watts(double utilisation) {
  return kIdleWatts + (kPeakWatts - kIdleWatts) * std::pow(utilisation, kPowerExponent);
}

// All workers of a group in a step with these loads.
[[nodiscard]] inline double group_watts(std::span<const Tokens> loads, Tokens envelope) {
  double watts = 0;
  for (const Tokens load : loads) {
    const bool some = envelope > Tokens{0};
    watts += worker_watts(some ? static_cast<double>(load.count()) / static_cast<double>(envelope.count()) : 0);
  }
  return watts;
}

}  // namespace balanceroute::sim
