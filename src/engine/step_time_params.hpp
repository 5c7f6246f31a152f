// step_time_params.hpp - the settings of a step's length.
//
// Decode reads the weights once a step (fixed) and the KV cache of its sequences (per token). The defaults are those of
// the BalanceRoute simulations; a slower accelerator in the same literature has 60 ms and 4e-5 ms.
#pragma once

#include "core/params.hpp"
#include "stats/step_time.hpp"

namespace balanceroute::engine {

struct StepTimeParams {
  double fixed_ms = 9.775;
  double per_token_ms = 1.00525e-4;

  [[nodiscard]] StepTime line() const { return {fixed_ms, per_token_ms}; }

  void visit_params(ParamVisitor& visitor) {
    visitor.real({"fixed_ms", "Part of a decode step that does not depend on load."}, fixed_ms, {0, 60'000});
    visitor.real({"per_token_ms", "Time a decode step takes for each token its most loaded worker reads."},
                 per_token_ms, {0, 1'000});
  }
};

}  // namespace balanceroute::engine
