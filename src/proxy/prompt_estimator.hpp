// prompt_estimator.hpp - how many tokens a prompt has, before an engine has counted them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "core/units.hpp"
#include "proxy/prompt_content.hpp"

namespace balanceroute::proxy {

// PromptEstimator learns tokens per byte of each part of a prompt, and tokens per piece of media, from the usage that
// engines report: each report moves the parts it speaks of by a share of the error, in proportion to their size
// (normalised least mean squares).
//   Gives up  the tokenizer: prompts of another language or content than the recent ones are estimated wrong by the
//             ratio of their bytes per token; media of other sizes likewise.
//   Threads   any. Two threads that learn at the same moment may lose one of the two samples.
class PromptEstimator {
 public:
  [[nodiscard]] Tokens estimate(const PromptContent& content) const {
    return Tokens{std::max<std::int64_t>(1, std::llround(tokens_of(content)))};
  }

  void learn(const PromptContent& content, std::int64_t tokens) {
    double sum = 0;
    double squares = 0;
    for (std::size_t part = 0; part < kPromptParts; ++part) {
      const double bytes = bytes_of(content, part);
      sum += bytes;
      squares += bytes * bytes;
    }
    if (tokens <= 0 || sum == 0) return;
    const double counted = std::clamp(static_cast<double>(tokens), kLeast * sum, kMost * sum);
    const double error = counted - tokens_of(content);
    for (std::size_t part = 0; part < kPromptParts; ++part) {
      const double before = tokens_per_byte_[part].load(std::memory_order_relaxed);
      const double after = before + kGain * error * bytes_of(content, part) / squares;
      tokens_per_byte_[part].store(std::clamp(after, kLeast, kMost), std::memory_order_relaxed);
    }
  }

 private:
  static constexpr double kGain = 0.02;
  static constexpr double kEnglish = 0.25;  // tokens per byte of English text under a usual tokenizer
  static constexpr double kLeast = 1.0 / 64;
  static constexpr double kMost = 4;
  static constexpr double kBytesOfMedia = 4096;  // that a piece is taken for: 1024 tokens before any is known

  static double bytes_of(const PromptContent& content, std::size_t part) {
    const auto amount = static_cast<double>(content.amounts[part]);
    return static_cast<PromptPart>(part) == PromptPart::Media ? amount * kBytesOfMedia : amount;
  }
  [[nodiscard]] double tokens_of(const PromptContent& content) const {
    double tokens = 0;
    for (std::size_t part = 0; part < kPromptParts; ++part) {
      tokens += bytes_of(content, part) * tokens_per_byte_[part].load(std::memory_order_relaxed);
    }
    return tokens;
  }

  std::array<std::atomic<double>, kPromptParts> tokens_per_byte_{kEnglish, kEnglish, kEnglish, kEnglish,
                                                                 kEnglish, kEnglish, kEnglish};
};

}  // namespace balanceroute::proxy
