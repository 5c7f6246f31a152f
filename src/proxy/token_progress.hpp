// token_progress.hpp - how the tokens of a stream are counted while it runs.
//
// An event is a token, unless the engine decodes several at once or sends them in bundles. The usage at the end of each
// answer shows which; where events are not enough, engines are asked for usage in every event, which the router takes
// out again. Source: engine-protocols 4.5.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>

namespace balanceroute::proxy {

// In the order of the setting `token_progress`.
enum class TokenProgressMode : std::uint8_t { Auto, Events, Usage };

// TokenProgress learns how many tokens a fleet's events carry.
//   Threads  any. Two threads that learn at the same moment may lose one of the two samples.
class TokenProgress {
 public:
  explicit TokenProgress(TokenProgressMode mode) : mode_{mode} {}

  // Whether new streams are to carry usage in every event.
  [[nodiscard]] bool continuous() const {
    if (mode_ != TokenProgressMode::Auto) return mode_ == TokenProgressMode::Usage;
    return tokens_per_event() > kFew;
  }

  // A stream has ended: so many tokens by its usage, in so many events with content.
  void learn(std::int64_t tokens, std::int64_t events) {
    if (tokens <= 0 || events <= 0) return;
    const double sample = static_cast<double>(tokens) / static_cast<double>(events);
    const double seen = samples_.fetch_add(1, std::memory_order_relaxed) + 1.0;
    const double before = tokens_per_event();
    const double gain = std::max(1.0 / seen, kGain);
    tokens_per_event_.store(before + gain * (sample - before), std::memory_order_relaxed);
  }

  [[nodiscard]] double tokens_per_event() const { return tokens_per_event_.load(std::memory_order_relaxed); }

 private:
  // Above it the ages of requests drift by more than the last event of an answer explains.
  static constexpr double kFew = 1.05;
  static constexpr double kGain = 0.02;

  TokenProgressMode mode_;
  std::atomic<double> tokens_per_event_{1};
  std::atomic<std::uint32_t> samples_{0};
};

}  // namespace balanceroute::proxy
