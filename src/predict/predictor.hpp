// predictor.hpp - how long a running request will go on, as far as anyone can know.
//
// A predictor is told what ends and what is given up, and answers for a request of some age. Source: BalanceRoute
// (arXiv 2605.06113), section 5; no clock, I/O, randomness or threads.
#pragma once

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

// Chances in fixed point, so that adding and taking out cancel exactly.
inline constexpr std::uint32_t kCertain = std::uint32_t{1} << 16;

// LengthOracle knows how long answers will be: a simulator, never a live router.
class LengthOracle {
 public:
  virtual ~LengthOracle() = default;
  // Tokens at the end of one sequence of the request, age on entry included.
  [[nodiscard]] virtual Tokens output_of(RequestId request) const = 0;
};

// Predictor learns from requests that ended and answers for those that run.
//   Information  a request about which nothing is known is predicted to outlive every horizon.
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

  // Whether enough has ended since the last renew() that another would change the answers.
  [[nodiscard]] virtual bool wants_renewal() const = 0;
  // Takes in what ended, beside the life so far of all that run now, which is known not to have ended yet.
  virtual void renew(std::span<const LifeSpan> running) = 0;

  // Of a request each of whose sequences has generated `age` tokens and has not ended; horizon >= 1.
  [[nodiscard]] virtual Prediction predict(const Request& request, Tokens age, Steps horizon) const = 0;
  // chances[h] = P(it still runs after h more steps), h = 0, 1, ..., of kCertain; chances[0] = kCertain, never rising.
  virtual void survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const = 0;
};

}  // namespace balanceroute
