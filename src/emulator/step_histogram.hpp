// step_histogram.hpp - how many tokens an engine step had, in the buckets vLLM uses.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace balanceroute::emulator {

// StepHistogram counts values by upper bound; the last bucket has none.
class StepHistogram {
 public:
  static constexpr std::array<std::int64_t, 13> kBounds{1, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192, 16384};

  void observe(std::int64_t value) {
    std::size_t bucket = 0;
    while (bucket < kBounds.size() && value > kBounds[bucket]) ++bucket;
    ++counts_[bucket];
    ++count_;
    sum_ += value;
  }

  [[nodiscard]] std::int64_t count() const { return count_; }
  [[nodiscard]] std::int64_t sum() const { return sum_; }
  // Values in bucket i alone; i == kBounds.size() is above all bounds.
  [[nodiscard]] std::int64_t in_bucket(std::size_t i) const { return counts_[i]; }

 private:
  std::array<std::int64_t, kBounds.size() + 1> counts_{};
  std::int64_t count_ = 0;
  std::int64_t sum_ = 0;
};

}  // namespace balanceroute::emulator
