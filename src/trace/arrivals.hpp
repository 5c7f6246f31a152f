// arrivals.hpp - other streams made from a recorded one: other times, or the same times with the lengths dealt anew.
//
// All randomness comes in as a generator, so one seed gives one stream.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "trace/trace.hpp"

namespace balanceroute::trace {

// A uniformly drawn order of 0 .. count-1; count < 2^32.
[[nodiscard]] std::vector<std::uint32_t> permutation(std::size_t count, Random& random);

// The same arrival times, each with the lengths (and prefix) of another request, in a uniformly drawn order.
[[nodiscard]] std::vector<TraceRequest> shuffled(std::vector<TraceRequest> requests, Random& random);

// The same requests in their order, arriving as a Poisson process; the first at zero. rate_per_second > 0.
[[nodiscard]] std::vector<TraceRequest> with_poisson_arrivals(std::vector<TraceRequest> requests,
                                                              double rate_per_second, Random& random);

// The same requests with every time divided by `speed`; speed > 0.
[[nodiscard]] std::vector<TraceRequest> at_speed(std::vector<TraceRequest> requests, double speed);

}  // namespace balanceroute::trace
