// token_pace.hpp - how many tokens a running sequence generates in a step: one, or more with speculative decoding.
#pragma once

#include <cassert>
#include <cmath>
#include <cstdint>

#include "core/units.hpp"

namespace balanceroute::engine {

// TokenPace is a mean of tokens a step that need not be whole: each step brings as many tokens as bring the sum of all
// steps so far to the whole part of mean * steps. So every sequence of a group generates the same in a step, the
// neighbouring whole numbers take turns as evenly as can be, and no chance is involved.
//   Exact    the mean is rounded to 2^-20, and counted with in whole numbers from there on.
//   Bounds   the mean is in [1, kMost], for 2^36 steps.
class TokenPace {
 public:
  static constexpr double kMost = 64;

  constexpr TokenPace() = default;
  explicit TokenPace(double tokens_per_step) : rate_{std::llround(std::ldexp(tokens_per_step, kBits))} {
    assert(tokens_per_step >= 1 && tokens_per_step <= kMost);
  }

  // In the step after so many.
  [[nodiscard]] constexpr Tokens after(Steps done) const {
    return Tokens{in_first(done.count() + 1) - in_first(done.count())};
  }
  // In any step.
  [[nodiscard]] constexpr Tokens most() const { return Tokens{(rate_ + kOne - 1) / kOne}; }

 private:
  static constexpr int kBits = 20;
  static constexpr std::int64_t kOne = std::int64_t{1} << kBits;

  [[nodiscard]] constexpr std::int64_t in_first(std::int64_t steps) const { return rate_ * steps / kOne; }

  std::int64_t rate_ = kOne;
};

}  // namespace balanceroute::engine
