// renewal_schedule.hpp - when a predictor should take in what it was told.
#pragma once

#include <algorithm>
#include <cstdint>

namespace balanceroute {

// RenewalSchedule counts requests that are over: a renewal is due after the first `first`, then each time an eighth
// more are over, at least kLeast and at most an eighth of the half life, so that no curve is far behind what it is made
// of and renewals stay rare.
class RenewalSchedule {
 public:
  RenewalSchedule(std::int64_t first, std::int64_t half_life) : most_{std::max(kLeast, half_life / 8)}, next_{first} {}

  void count() { ++over_; }
  [[nodiscard]] bool due() const { return over_ >= next_; }
  void renewed() { next_ = over_ + std::clamp(over_ / 8, kLeast, most_); }

 private:
  static constexpr std::int64_t kLeast = 100;

  std::int64_t most_;
  std::int64_t next_;
  std::int64_t over_ = 0;
};

}  // namespace balanceroute
