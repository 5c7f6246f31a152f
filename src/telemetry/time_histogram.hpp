// time_histogram.hpp - times counted by how long they were, by one thread that has no time to lose.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace balanceroute::telemetry {

// TimeHistogram counts spans of microseconds to seconds.
//   Buckets  a time is in the first whose end it does not exceed; the last has no end.
//   Threads  not synchronised; copies are for others.
class TimeHistogram {
 public:
  static constexpr std::array kEnds{10e-6, 25e-6, 50e-6, 100e-6, 250e-6, 500e-6, 1e-3, 2.5e-3, 5e-3, 10e-3, 50e-3};

  void add(double seconds) {
    const auto bucket = static_cast<std::size_t>(std::ranges::lower_bound(kEnds, seconds) - kEnds.begin());
    ++counts_[bucket];
    sum_ += seconds;
  }

  // How many are in that bucket and those before.
  [[nodiscard]] std::uint64_t up_to(std::size_t bucket) const {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i <= bucket; ++i) count += counts_[i];
    return count;
  }
  [[nodiscard]] std::uint64_t count() const { return up_to(kEnds.size()); }
  [[nodiscard]] double sum() const { return sum_; }

 private:
  std::array<std::uint64_t, kEnds.size() + 1> counts_{};
  double sum_ = 0;
};

}  // namespace balanceroute::telemetry
