// prompt_estimator.hpp - how many tokens a prompt has, before an engine has counted them.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/units.hpp"

namespace balanceroute::proxy {

// PromptEstimator learns bytes per token from the usage that engines report.
//   Gives up  the tokenizer: prompts of another language or content than the recent ones are estimated wrong by the
//             ratio of their bytes per token.
//   Threads   any. Two threads that learn at the same moment may lose one of the two samples.
class PromptEstimator {
 public:
  Tokens estimate(std::size_t bytes) const {
    const double tokens = static_cast<double>(bytes) / bytes_per_token_.load(std::memory_order_relaxed);
    return Tokens{std::max<std::int64_t>(1, std::llround(tokens))};
  }

  void learn(std::size_t bytes, std::int64_t tokens) {
    if (tokens <= 0 || bytes == 0) return;
    const double sample = std::clamp(static_cast<double>(bytes) / static_cast<double>(tokens), 0.25, 64.0);
    const double before = bytes_per_token_.load(std::memory_order_relaxed);
    bytes_per_token_.store(before + kGain * (sample - before), std::memory_order_relaxed);
  }

  double bytes_per_token() const { return bytes_per_token_.load(std::memory_order_relaxed); }

 private:
  static constexpr double kGain = 0.02;
  std::atomic<double> bytes_per_token_{4.0};  // English text under a usual tokenizer
};

}  // namespace balanceroute::proxy
