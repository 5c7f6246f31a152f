// envelope.hpp - the running maximum of worker loads, and each worker's room below it.
//
// Pure arithmetic: no clock, I/O, randomness or threads. Worker positions are those of the group's arrays.
// Source: BalanceRoute (arXiv 2605.06113), eq. 5.
#pragma once

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace balanceroute {

// The largest load, 0 for no workers.
[[nodiscard]] constexpr Tokens largest_load(std::span<const Tokens> loads) {
  return loads.empty() ? Tokens{0} : std::ranges::max(loads);
}

[[nodiscard]] constexpr Tokens total_load(std::span<const Tokens> loads) {
  Tokens total{0};
  for (const Tokens load : loads) total += load;
  return total;
}

// I = G * envelope - total load: the tokens of reading that the group waits away in one step.
[[nodiscard]] constexpr Tokens imbalance(std::span<const Tokens> loads) {
  return largest_load(loads) * static_cast<std::int64_t>(loads.size()) - total_load(loads);
}

// Envelope - smallest load: the number the published tables show. Another number than imbalance.
[[nodiscard]] constexpr Tokens spread(std::span<const Tokens> loads) {
  return loads.empty() ? Tokens{0} : std::ranges::max(loads) - std::ranges::min(loads);
}

// Envelope tracks the largest load of one group while a policy plans admissions to it.
//   Units       Tokens a worker reads in one step (step_load).
//   Shape       one load per worker, by position in [0, workers()).
//   Invariants  value() == max(load(g)), Tokens{0} for no workers; margin(g) >= Tokens{0}.
//   Cost        raise O(1); lower O(G) only when g held the maximum; assign O(G), no allocation once warm.
//   Threads     not synchronised; owned by one policy.
class Envelope {
 public:
  Envelope() = default;
  explicit Envelope(std::span<const Tokens> loads) { assign(loads); }

  void assign(std::span<const Tokens> loads) {
    loads_.assign(loads.begin(), loads.end());
    value_ = largest_load(loads_);
  }

  [[nodiscard]] std::size_t workers() const { return loads_.size(); }
  [[nodiscard]] Tokens value() const { return value_; }
  [[nodiscard]] Tokens load(std::size_t g) const { return loads_[g]; }
  [[nodiscard]] Tokens margin(std::size_t g) const { return value_ - loads_[g]; }
  [[nodiscard]] std::span<const Tokens> loads() const { return loads_; }

  void raise(std::size_t g, Tokens by) {
    assert(by >= Tokens{0});
    loads_[g] += by;
    value_ = std::max(value_, loads_[g]);
  }

  void lower(std::size_t g, Tokens by) {
    assert(by >= Tokens{0} && by <= loads_[g]);
    const bool held_maximum = loads_[g] == value_;
    loads_[g] -= by;
    if (held_maximum) value_ = largest_load(loads_);
  }

 private:
  std::vector<Tokens> loads_;
  Tokens value_{0};
};

}  // namespace balanceroute
