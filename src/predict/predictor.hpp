// predictor.hpp - how long a running request will go on, as far as anyone can know.
//
// A predictor is told what ends and what is given up, and answers for a request of some age. Source: BalanceRoute
// (arXiv 2605.06113), section 5; no clock, I/O, randomness or threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "core/ledger.hpp"
#include "core/request.hpp"
#include "core/units.hpp"
#include "predict/kaplan_meier.hpp"

namespace balanceroute {

// Prediction is what is expected of one sequence within a horizon of H steps.
//   Ranges  finish_chance in [0, 1]; mean_remaining in [0, H], meaningless where finish_chance is 0.
struct Prediction {
  double finish_chance = 0;   // p_fin = P(it ends within H)
  double mean_remaining = 0;  // mu_rem, in steps, given that it does

  // c = E[min(remaining, H)] = (1 - p_fin) * H + p_fin * mu_rem; H where nothing is known.
  [[nodiscard]] double remaining(Steps horizon) const {
    return (1 - finish_chance) * static_cast<double>(horizon.count()) + finish_chance * mean_remaining;
  }
};

// The prediction whose remaining(horizon) is `within`.
[[nodiscard]] inline Prediction prediction(double finish_chance, double within, Steps horizon) {
  if (finish_chance <= 0) return {};
  const auto steps = static_cast<double>(horizon.count());
  const double mean = (within - (1 - finish_chance) * steps) / finish_chance;
  return {.finish_chance = finish_chance, .mean_remaining = std::clamp(mean, 0.0, steps)};
}

// Chances in fixed point, so that adding and taking out cancel exactly.
inline constexpr std::uint32_t kCertain = std::uint32_t{1} << 16;

// To the nearest, from the next finer one.
[[nodiscard]] inline std::uint32_t fixed_point(double chance) {
  return (static_cast<std::uint32_t>(chance * (2 * kCertain)) + 1) / 2;
}

// Whether an answer of so many tokens went as far as its request allows: how long it would have been is not known.
[[nodiscard]] inline bool met_limit(const Request& request, Tokens generated) {
  return generated >= request.output_limit;
}

// LengthOracle knows how long answers will be: a simulator, never a live router.
class LengthOracle {
 public:
  virtual ~LengthOracle() = default;
  // Tokens at the end of one sequence of the request, age on entry included.
  [[nodiscard]] virtual Tokens output_of(RequestId request) const = 0;
};

// Of `requests` that are over, `hits` had a prompt that the predictor knew.
struct KeyHits {
  std::int64_t requests = 0;
  std::int64_t hits = 0;
};

// Predictor learns from requests that ended and answers for those that run.
//   Information  a request about which nothing is known is predicted to outlive every horizon.
//   Stability    the answer for a request of some age changes in renew() only, so terms that are made of it can be
//   taken
//                out again.
//   Agreement    survival() is predict() step by step: chances[H] is 1 - finish_chance, and the sum of the first H is
//                remaining(H), but for rounding.
//   Determinism  the same events give the same answers.
//   Threads      not synchronised.
class Predictor {
 public:
  virtual ~Predictor() = default;

  // One name everywhere: config value, flag value, metric label.
  [[nodiscard]] virtual std::string_view name() const = 0;

  // The request is over, each sequence having generated so many tokens; `request.generated` of them were there when it
  // came into sight.
  virtual void ended(const Request& request, Tokens generated, LeaseEnd how) = 0;

  // Whether it knows anything of lengths yet. What is answered before is no prediction that one could check.
  [[nodiscard]] virtual bool informed() const = 0;

  // Whether enough has ended since the last renew() that another would change the answers.
  [[nodiscard]] virtual bool wants_renewal() const = 0;
  // Takes in what ended, beside the life so far of all that run now, which is known not to have ended yet.
  virtual void renew(std::span<const LifeSpan> running) = 0;

  // Of a request each of whose sequences has generated `age` tokens and has not ended; horizon >= 1.
  [[nodiscard]] virtual Prediction predict(const Request& request, Tokens age, Steps horizon) const = 0;
  // chances[h] = P(it still runs after h more steps), h = 0, 1, ..., of kCertain; chances[0] = kCertain, never rising.
  virtual void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const = 0;

  // None for a predictor that does not look at prompts.
  [[nodiscard]] virtual KeyHits key_hits() const { return {}; }
};

}  // namespace balanceroute
