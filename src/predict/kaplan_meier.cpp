#include "predict/kaplan_meier.hpp"

#include <algorithm>

namespace balanceroute {
namespace {

std::size_t bounded(Tokens length) {
  return static_cast<std::size_t>(std::clamp(length, Tokens{0}, KaplanMeier::kLongest).count());
}

}  // namespace

double SurvivalCurve::mean_within(Tokens age, Tokens horizon) const {
  const double now = at(age);
  if (now <= 0) return static_cast<double>(horizon.count());
  const Tokens until = age + horizon;
  const auto known = static_cast<std::int64_t>(values_.size());
  const std::int64_t beyond = std::max<std::int64_t>(until.count() - std::max(age.count(), known), 0);
  const double last = values_.empty() ? 1 : values_.back();
  const double sum = tail(age) - tail(until) + static_cast<double>(beyond) * last;
  return std::clamp(sum / now, 0.0, static_cast<double>(horizon.count()));
}

void SurvivalCurve::sum_up() {
  tails_.resize(values_.size());
  double sum = 0;
  for (std::size_t x = values_.size(); x-- > 0;) tails_[x] = sum += values_[x];
  for (const double survival : values_) mean_tokens_ += survival;
}

void KaplanMeier::make_room(std::size_t length) {
  if (length < ends_at_.size()) return;
  ends_at_.resize(length + 1);
  others_.resize(length + 1);
}

void KaplanMeier::enter_late(std::size_t first_seen, std::int64_t by) {
  if (first_seen > 0) others_[first_seen] -= by;
}

void KaplanMeier::expose(const LifeSpan& span, std::int64_t by) {
  const std::size_t first = bounded(span.first_seen);
  const std::size_t last = bounded(span.last_seen);
  if (last <= first) return;
  make_room(last);
  others_[last] += by;
  enter_late(first, by);
}

void KaplanMeier::ended(const LifeSpan& span) {
  if (span.last_seen > kLongest) return cut(span);
  const std::size_t first = bounded(span.first_seen);
  const std::size_t last = bounded(span.last_seen);
  if (last <= first) return;
  make_room(last);
  ends_at_[last] += kOne;
  enter_late(first, kOne);
  ++ends_;
  longest_ = std::max(longest_, last);
}

void KaplanMeier::cut(const LifeSpan& span) {
  expose(span, kOne);
}

void KaplanMeier::halve() {
  for (std::int64_t& count : ends_at_) count /= 2;
  for (std::int64_t& count : others_) count /= 2;
  while (longest_ > 0 && ends_at_[longest_] == 0) --longest_;
}

void KaplanMeier::fill(SurvivalCurve& curve, std::span<const LifeSpan> running) {
  curve.values_.clear();
  curve.tails_.clear();
  curve.mean_tokens_ = 0;
  if (longest_ == 0) return;
  for (const LifeSpan& span : running) expose(span, kOne);
  std::int64_t at_risk = 0;
  for (std::size_t x = 1; x < ends_at_.size(); ++x) at_risk += ends_at_[x] + others_[x];
  double survival = 1;
  curve.values_.push_back(survival);
  for (std::size_t x = 1; x <= longest_; ++x) {
    // Halves of late entries are rounded apart from the ends that belong to them.
    const std::int64_t exposed = std::max(at_risk, ends_at_[x]);
    if (ends_at_[x] > 0) survival *= 1 - static_cast<double>(ends_at_[x]) / static_cast<double>(exposed);
    at_risk -= ends_at_[x] + others_[x];
    curve.values_.push_back(survival);
  }
  for (const LifeSpan& span : running) expose(span, -kOne);
  curve.sum_up();
}

}  // namespace balanceroute
