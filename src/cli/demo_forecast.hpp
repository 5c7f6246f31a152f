// demo_forecast.hpp - what the simulator says of a demo's run: same requests at the same times, fleet, policy and
// measured stretch.
#pragma once

#include <cstddef>

#include "cli/demo.hpp"
#include "trace/trace.hpp"

namespace balanceroute::cli {

// The measured stretch begins with the arrival of request `first` (from 0). A freed slot is filled a step late in a
// live fleet, since the router hears of it while the next step runs; so the simulated admissions take as long as the
// router's round delay, and the transfer of the prompt's KV where prefill is done elsewhere.
Forecast forecast(const DemoParams& params, const DemoSetup& setup, const trace::Trace& trace, std::size_t first);

}  // namespace balanceroute::cli
