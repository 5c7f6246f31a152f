// traffic_sample.hpp - what br_fit remembers of traffic: recent prompts, and how old requests are while they run.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "core/units.hpp"

namespace balanceroute {

// PromptSample knows mean and 99th percentile of the last prompts to arrive.
//   Cost  O(1) a prompt, O(kKept) each kRenewal prompts; no allocation after construction.
class PromptSample {
 public:
  PromptSample() {
    last_.reserve(kKept);
    sorted_.reserve(kKept);
  }

  void add(Tokens prompt) {
    if (last_.size() < kKept) {
      last_.push_back(prompt.count());
    } else {
      last_[seen_ % kKept] = prompt.count();
    }
    ++seen_;
    if (seen_ == kFirst || (seen_ > kFirst && (seen_ - kFirst) % kRenewal == 0)) renew();
  }

  [[nodiscard]] bool known() const { return seen_ >= kFirst; }
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double q99() const { return q99_; }

 private:
  static constexpr std::size_t kKept = 1000;
  static constexpr std::size_t kFirst = 20;
  static constexpr std::size_t kRenewal = 100;

  void renew() {
    sorted_.assign(last_.begin(), last_.end());
    const auto rank = std::min(sorted_.size() - 1, sorted_.size() * 99 / 100);
    std::ranges::nth_element(sorted_, sorted_.begin() + static_cast<std::ptrdiff_t>(rank));
    q99_ = static_cast<double>(sorted_[rank]);
    mean_ = static_cast<double>(std::accumulate(last_.begin(), last_.end(), std::int64_t{0})) /
            static_cast<double>(last_.size());
  }

  std::vector<std::int64_t> last_;
  std::vector<std::int64_t> sorted_;
  std::size_t seen_ = 0;
  double mean_ = 0;
  double q99_ = 0;
};

// MeanAge estimates from finished requests how old one of such a prompt is, on average, while it runs: E[o^2] / 2 E[o]
// over prompts of the same power of two, with some average requests mixed in.
class MeanAge {
 public:
  void finished(Tokens prompt, Tokens output) {
    const auto length = static_cast<double>(output.count());
    for (Sums* sums : {&all_, &by_prompt_[bucket(prompt)]}) {
      sums->count += 1;
      sums->first += length;
      sums->second += length * length;
    }
  }

  [[nodiscard]] double of(Tokens prompt) const {
    if (all_.count < kFirst) return 0;
    const Sums& like = by_prompt_[bucket(prompt)];
    const double mixed = kMixedIn / all_.count;
    const double first = like.first + mixed * all_.first;
    return first > 0 ? (like.second + mixed * all_.second) / (2 * first) : 0;
  }

 private:
  static constexpr double kFirst = 100;
  static constexpr double kMixedIn = 50;

  struct Sums {
    double count = 0;
    double first = 0;   // of outputs
    double second = 0;  // of their squares
  };
  [[nodiscard]] static std::size_t bucket(Tokens prompt) {
    return std::bit_width(static_cast<std::uint64_t>(std::max<std::int64_t>(prompt.count(), 1)));
  }

  Sums all_;
  std::array<Sums, 65> by_prompt_{};
};

}  // namespace balanceroute
