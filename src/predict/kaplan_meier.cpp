#include "predict/kaplan_meier.hpp"

#include <algorithm>

namespace balanceroute {
namespace {

std::size_t bounded(Tokens length) {
  return static_cast<std::size_t>(std::clamp(length, Tokens{0}, KaplanMeier::kLongest).count());
}

}  // namespace

// Exposure as a difference: the sum of enters_ below x is the number at risk of ending with token x.
void KaplanMeier::expose(const LifeSpan& span, std::int32_t by) {
  const std::size_t first = bounded(span.first_seen);
  const std::size_t last = bounded(span.last_seen);
  if (last <= first) return;
  if (last >= enters_.size()) {
    enters_.resize(last + 1);
    ends_at_.resize(last + 1);
  }
  enters_[first] += by;
  enters_[last] -= by;
}

void KaplanMeier::ended(const LifeSpan& span) {
  expose(span, 1);
  if (span.last_seen <= span.first_seen || span.last_seen > kLongest) return;
  const std::size_t last = bounded(span.last_seen);
  ++ends_at_[last];
  ++ends_;
  longest_ = std::max(longest_, last);
}

void KaplanMeier::cut(const LifeSpan& span) {
  expose(span, 1);
}

void KaplanMeier::fill(SurvivalCurve& curve, std::span<const LifeSpan> running) {
  curve.values_.clear();
  curve.mean_tokens_ = 0;
  if (ends_ == 0) return;
  for (const LifeSpan& span : running) expose(span, 1);
  double survival = 1;
  std::int64_t at_risk = 0;
  for (std::size_t x = 0; x <= longest_; ++x) {
    if (ends_at_[x] > 0) survival *= 1 - static_cast<double>(ends_at_[x]) / static_cast<double>(at_risk);
    at_risk += enters_[x];
    curve.values_.push_back(survival);
    curve.mean_tokens_ += survival;
  }
  for (const LifeSpan& span : running) expose(span, -1);
}

}  // namespace balanceroute
