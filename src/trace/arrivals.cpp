#include "trace/arrivals.hpp"

#include <cassert>
#include <chrono>
#include <cmath>
#include <numeric>
#include <utility>

namespace balanceroute::trace {
namespace {

std::chrono::nanoseconds rounded_nanoseconds(double count) {
  return std::chrono::nanoseconds{std::llround(count)};
}

}  // namespace

std::vector<std::uint32_t> permutation(std::size_t count, Random& random) {
  std::vector<std::uint32_t> order(count);
  std::iota(order.begin(), order.end(), std::uint32_t{0});
  for (std::size_t left = count; left > 1; --left) std::swap(order[left - 1], order[random.below(left)]);
  return order;
}

std::vector<TraceRequest> shuffled(std::vector<TraceRequest> requests, Random& random) {
  for (std::size_t left = requests.size(); left > 1; --left) {
    auto& last = requests[left - 1];
    auto& drawn = requests[random.below(left)];
    std::swap(last, drawn);
    std::swap(last.arrival, drawn.arrival);  // the times stay where they were
  }
  return requests;
}

std::vector<TraceRequest> with_poisson_arrivals(std::vector<TraceRequest> requests, double rate_per_second,
                                                Random& random) {
  assert(rate_per_second > 0);
  double now = 0;
  for (auto& request : requests) {
    request.arrival = rounded_nanoseconds(now);
    now += random.exponential(1e9 / rate_per_second);
  }
  return requests;
}

std::vector<TraceRequest> at_speed(std::vector<TraceRequest> requests, double speed) {
  assert(speed > 0);
  for (auto& request : requests) {
    request.arrival = rounded_nanoseconds(static_cast<double>(request.arrival.count()) / speed);
  }
  return requests;
}

}  // namespace balanceroute::trace
