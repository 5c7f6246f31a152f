#include "trace/stationary_law.hpp"

#include <algorithm>
#include <cassert>

namespace balanceroute::trace {

StationaryLaw::StationaryLaw(std::span<const TraceRequest> requests) {
  assert(!requests.empty());
  ends_.reserve(requests.size());
  std::uint64_t sum = 0;
  for (const auto& request : requests) {
    sum += static_cast<std::uint64_t>(request.output.count());
    ends_.push_back(sum);
  }
}

StationaryLaw::Running StationaryLaw::draw(Random& random) const {
  // One uniform token-step of the whole trace names the request by its length and the age by its place.
  const auto token_step = random.below(ends_.back());
  const auto found = std::ranges::upper_bound(ends_, token_step);
  const auto index = static_cast<std::size_t>(found - ends_.begin());
  const auto begin = index == 0 ? 0 : ends_[index - 1];
  return {index, Tokens{static_cast<std::int64_t>(token_step - begin)}};
}

}  // namespace balanceroute::trace
