// demo_engines.hpp - what the demo's prefill engines take for a prompt, live and simulated.
#pragma once

#include "stats/step_time.hpp"

namespace balanceroute::cli {

// Two instances are busy for about half of the time with the bundled trace at the default load: prefill is there, and
// decode is what runs full.
inline constexpr StepTime kDemoPrefillTime{.fixed_ms = 5, .per_token_ms = 0.02};
inline constexpr StepTime kDemoTransferTime{.fixed_ms = 2, .per_token_ms = 1e-3};

}  // namespace balanceroute::cli
