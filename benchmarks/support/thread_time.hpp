// thread_time.hpp - what a thread spends, and how such times are spread.
#pragma once

#include <ctime>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace balanceroute {

// CPU time of this thread, in ns: what other programs on the machine do is not in it. Reading it takes about 0.2 us.
inline std::int64_t thread_time_ns() {
  std::timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// TimeHistogram counts times in buckets that are at most 1/64 wide of their value.
class TimeHistogram {
 public:
  void add(std::int64_t ns) {
    ++counts_[bucket(static_cast<std::uint64_t>(std::max<std::int64_t>(ns, 0)))];
    ++total_;
  }

  [[nodiscard]] std::int64_t total() const { return total_; }

  // The upper end of the bucket in which the share of the times is reached; 0 for none.
  [[nodiscard]] double quantile_ns(double share) const {
    const auto wanted = static_cast<std::int64_t>(share * static_cast<double>(total_));
    std::int64_t seen = 0;
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      seen += counts_[i];
      if (seen > wanted) return upper_end(i);
    }
    return 0;
  }

 private:
  static constexpr std::size_t kFine = 64;  // buckets of a power of two

  [[nodiscard]] static std::size_t bucket(std::uint64_t ns) {
    if (ns < kFine) return static_cast<std::size_t>(ns);
    const auto shift = static_cast<std::size_t>(std::bit_width(ns)) - std::bit_width(kFine);
    return (shift + 1) * kFine + static_cast<std::size_t>(ns >> shift) - kFine;
  }
  [[nodiscard]] static double upper_end(std::size_t bucket) {
    if (bucket < kFine) return static_cast<double>(bucket);
    const std::size_t shift = bucket / kFine - 1;
    return static_cast<double>((bucket % kFine + kFine + 1) << shift);
  }

  std::array<std::int64_t, 48 * kFine> counts_{};
  std::int64_t total_ = 0;
};

}  // namespace balanceroute
