// patience.hpp - how long a request may wait before nobody else may go first.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace balanceroute {

// Patience ends after a fixed time, or else after the larger of 10 s and four times what the requests that wait take at
// the present rate of admissions. A shorter one would, in overload, turn every policy into first come, first served.
//   Rate     admissions of the last 16 seconds, the present one included, over the part of them that was watched.
//   Cost     admitted() O(seconds since the last one, at most 16), limit() O(1).
//   Threads  not synchronised. Moments never go back.
class Patience {
 public:
  using Nanoseconds = std::chrono::nanoseconds;

  explicit Patience(std::optional<Nanoseconds> fixed = {}) : fixed_{fixed} {}

  void set(std::optional<Nanoseconds> fixed) { fixed_ = fixed; }
  void admitted(Nanoseconds now);
  // While so many requests wait.
  [[nodiscard]] Nanoseconds limit(Nanoseconds now, std::size_t waiting);

 private:
  static constexpr std::size_t kWindow = 16;  // seconds

  void look_at(Nanoseconds now);

  std::optional<Nanoseconds> fixed_;
  std::optional<Nanoseconds> began_;
  std::int64_t second_ = 0;                        // the present one
  std::array<std::int64_t, kWindow> by_second_{};  // admissions, by second modulo the window
  std::int64_t in_window_ = 0;                     // their sum
};

}  // namespace balanceroute
