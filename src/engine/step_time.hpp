// step_time.hpp - how long a synchronised decode step lasts.
//
// T = fixed + per_token * M, M being the largest load of the group: decode reads weights once (fixed) and the KV cache
// of its sequences (per token). The defaults are those of the BalanceRoute simulations; a slower accelerator in the
// same literature has 60 ms and 4e-5 ms.
#pragma once

#include <chrono>
#include <cmath>

#include "core/params.hpp"
#include "core/units.hpp"

namespace balanceroute::engine {

struct StepTimeParams {
  double fixed_ms = 9.775;
  double per_token_ms = 1.00525e-4;

  void visit_params(ParamVisitor& visitor) {
    visitor.real({"fixed_ms", "Part of a decode step that does not depend on load."}, fixed_ms, {0, 60'000});
    visitor.real({"per_token_ms", "Time a decode step takes for each token its most loaded worker reads."},
                 per_token_ms, {0, 1'000});
  }
};

// StepTime is the line T(load). For one worker's own load it is the time that worker is busy within the step.
class StepTime {
 public:
  explicit StepTime(const StepTimeParams& params) : params_{params} {}

  [[nodiscard]] double milliseconds(Tokens load) const {
    return params_.fixed_ms + params_.per_token_ms * static_cast<double>(load.count());
  }
  [[nodiscard]] std::chrono::nanoseconds duration(Tokens load) const {
    return std::chrono::nanoseconds{std::llround(milliseconds(load) * 1e6)};
  }

 private:
  StepTimeParams params_;
};

}  // namespace balanceroute::engine
