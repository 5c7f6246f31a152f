// kaplan_meier.hpp - how long answers are, learned from those that ended and those that have not yet.
//
// The product-limit estimate (Kaplan and Meier, 1958) with left truncation. No clock, I/O, randomness or threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace balanceroute {

// SurvivalCurve is S(x) = P(an answer has more than x tokens), for x = 0, 1, ...
//   Invariants  in [0, 1] and never rising; 1 everywhere without data; beyond its last value it stays there.
//   Cost        every question O(1).
class SurvivalCurve {
 public:
  [[nodiscard]] double at(Tokens x) const {
    if (values_.empty()) return 1;
    const auto index = static_cast<std::size_t>(x.count());
    return index < values_.size() ? values_[index] : values_.back();
  }

  // P(more than age + horizon tokens, given more than age); 1 where no answer is known to grow so old.
  [[nodiscard]] double conditional(Tokens age, Tokens horizon) const {
    const double now = at(age);
    return now > 0 ? at(age + horizon) / now : 1;
  }

  // E[min(remaining, horizon)], given more than age tokens: the sum of conditional(age, h) for h < horizon.
  [[nodiscard]] double mean_within(Tokens age, Tokens horizon) const;

  // Sum of S over 0 .. longest(): the mean length, as far as it was seen.
  [[nodiscard]] double mean_tokens() const { return mean_tokens_; }
  [[nodiscard]] Tokens longest() const { return Tokens{static_cast<std::int64_t>(values_.size()) - 1}; }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  friend class KaplanMeier;
  void sum_up();
  // Sum of S over x .. longest(). From the tail, so that differences are exact to the size of S there.
  [[nodiscard]] double tail(Tokens x) const {
    const auto index = static_cast<std::size_t>(x.count());
    return index < tails_.size() ? tails_[index] : 0;
  }

  std::vector<double> values_;
  std::vector<double> tails_;
  double mean_tokens_ = 0;
};

// LifeSpan is what was seen of one answer: at risk of ending after each token in (first_seen, last_seen].
struct LifeSpan {
  Tokens first_seen{0};  // its age when it came into sight
  Tokens last_seen;
};

// KaplanMeier counts ends and exposures, and makes a curve of them on demand.
//   Cost        ended, cut O(1) but for growth to a new greatest length; halve O(greatest length); fill O(greatest
//               length + running). Allocates only for a new greatest length.
//   Bounds      what lies beyond kLongest is counted as still running there.
//   Fading      counts are fixed point with kOne for one answer, so that what is put in and taken out cancels exactly;
//               an answer halved more often than kOne has bits is forgotten.
//   Threads     not synchronised.
class KaplanMeier {
 public:
  static constexpr Tokens kLongest{std::int64_t{1} << 20};

  // An answer of span.last_seen tokens is complete.
  void ended(const LifeSpan& span);
  // One was given up; how long it would have been is not known.
  void cut(const LifeSpan& span);

  // From now on all that was counted so far weighs half.
  void halve();

  // Makes `curve` of all that was counted, and of those that run now, which have not ended at their present age.
  void fill(SurvivalCurve& curve, std::span<const LifeSpan> running);

  [[nodiscard]] std::size_t ends() const { return ends_; }  // ever

 private:
  static constexpr std::int64_t kOne = std::int64_t{1} << 20;

  // Counts one that goes out of sight without an end.
  void expose(const LifeSpan& span, std::int64_t by);
  void enter_late(std::size_t first_seen, std::int64_t by);
  void make_room(std::size_t length);

  // By number of tokens, from 1. At risk of ending with token x are all that are counted at x and above in both rows.
  std::vector<std::int64_t> ends_at_;
  std::vector<std::int64_t> others_;  // last seen here without an end, less those that came into sight here
  std::size_t ends_ = 0;
  std::size_t longest_ = 0;  // the longest that ended and is not forgotten
};

}  // namespace balanceroute
