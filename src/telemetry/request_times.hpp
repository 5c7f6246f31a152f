// request_times.hpp - what one finished request tells of its way through the router.
#pragma once

namespace balanceroute::telemetry {

// RequestTimes are what one finished request adds to the histograms, in seconds; negative means that it never came to
// that point.
struct RequestTimes {
  double arrival_wait = -1;  // from arrival to a prefill instance
  double prefill = -1;       // of the prefill instance, tries that failed included
  double pool_wait = -1;     // from there, or from arrival where nothing is prefilled before, to a worker
  double ttft = -1;          // from arrival to the first token
  double tpot = -1;          // between tokens after the first
  double e2e = -1;           // from arrival to the end
};

}  // namespace balanceroute::telemetry
