// step_time.hpp - how long a synchronised decode step lasts.
#pragma once

#include <chrono>
#include <cmath>

#include "core/units.hpp"

namespace balanceroute {

// StepTime is the line T = fixed + per_token * load. At the envelope it is the length of the step; at one worker's own
// load, the time that worker is busy within it.
struct StepTime {
  double fixed_ms = 0;
  double per_token_ms = 0;

  [[nodiscard]] double milliseconds(Tokens load) const {
    return fixed_ms + per_token_ms * static_cast<double>(load.count());
  }
  [[nodiscard]] std::chrono::nanoseconds duration(Tokens load) const {
    return std::chrono::nanoseconds{std::llround(milliseconds(load) * 1e6)};
  }
};

}  // namespace balanceroute
