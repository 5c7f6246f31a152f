// units.hpp - the units the routing core counts in, one type each, so that adding tokens to steps does not compile.
//
// Pure arithmetic. Spans of time are std::chrono's business, not this file's.
#pragma once

#include <algorithm>
#include <compare>
#include <concepts>
#include <cstdint>

namespace balanceroute {

// Quantity is a whole number of one unit, named by its tag. It converts to and from a number only by name; like adds to
// like; a whole number scales it.
template <class Tag, std::integral Rep = std::int64_t>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(Rep count) : count_{count} {}

  [[nodiscard]] constexpr Rep count() const { return count_; }

  friend constexpr auto operator<=>(Quantity, Quantity) = default;

  constexpr Quantity& operator+=(Quantity other) {
    count_ += other.count_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    count_ -= other.count_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity{a.count_ + b.count_}; }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity{a.count_ - b.count_}; }
  friend constexpr Quantity operator*(Quantity a, Rep times) { return Quantity{a.count_ * times}; }
  friend constexpr Quantity operator*(Rep times, Quantity a) { return a * times; }

 private:
  Rep count_{};
};

using Tokens = Quantity<struct TokensTag>;
using Steps = Quantity<struct StepsTag>;  // synchronised decode steps of one group

// The part of `size` above `margin`: what an admission adds to the envelope.
constexpr Tokens overflow(Tokens size, Tokens margin) {
  return std::max(size - margin, Tokens{0});
}

}  // namespace balanceroute
