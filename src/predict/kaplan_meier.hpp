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

  // Sum of S over 0 .. longest(): the mean length, as far as it was seen.
  [[nodiscard]] double mean_tokens() const { return mean_tokens_; }
  [[nodiscard]] Tokens longest() const { return Tokens{static_cast<std::int64_t>(values_.size()) - 1}; }
  [[nodiscard]] bool empty() const { return values_.empty(); }

 private:
  friend class KaplanMeier;
  std::vector<double> values_;
  double mean_tokens_ = 0;
};

// LifeSpan is what was seen of one answer: at risk of ending after each token in (first_seen, last_seen].
struct LifeSpan {
  Tokens first_seen{0};  // its age when it came into sight
  Tokens last_seen;
};

// KaplanMeier counts ends and exposures, and makes a curve of them on demand.
//   Cost        ended, cut O(1) but for growth to a new greatest length; fill O(longest + running). Allocates only for
//               a new greatest length.
//   Bounds      what lies beyond kLongest is counted as still running there.
//   Threads     not synchronised.
class KaplanMeier {
 public:
  static constexpr Tokens kLongest{std::int64_t{1} << 20};

  // An answer of span.last_seen tokens is complete.
  void ended(const LifeSpan& span);
  // One was given up; how long it would have been is not known.
  void cut(const LifeSpan& span);

  // Makes `curve` of all that was counted, and of those that run now, which have not ended at their present age.
  void fill(SurvivalCurve& curve, std::span<const LifeSpan> running);

  [[nodiscard]] std::size_t ends() const { return ends_; }

 private:
  void expose(const LifeSpan& span, std::int32_t by);

  // By number of tokens.
  std::vector<std::int32_t> ends_at_;
  std::vector<std::int32_t> enters_;  // at risk from the next token on; one leaves after its last
  std::size_t ends_ = 0;
  std::size_t longest_ = 0;  // the longest that ended
};

}  // namespace balanceroute
