#include "proxy/reconciler.hpp"

#include <algorithm>

namespace balanceroute::proxy {

bool Reconciler::Streak::holds(bool now) {
  if (!now) {
    length_ = 0;
    return false;
  }
  if (length_ <= kReadings) ++length_;
  return length_ == kReadings;
}

Findings Reconciler::compare(const RankReading& engine, const MirrorWindow& mirror) {
  Findings found;
  if (!engine.running) return found;
  const std::int64_t waiting = engine.waiting.value_or(0);
  const std::int64_t total = *engine.running + waiting;
  const std::int64_t slack = std::max<std::int64_t>(1, mirror.slots / 32);
  const bool above = total > mirror.most + slack;
  const bool below = total + slack < mirror.fewest;
  if (above || below) ++disagreements_;

  const bool steady_above = above_.holds(above);
  const std::int64_t foreign = total - (mirror.most - background_);
  least_foreign_ = above_.begins() ? foreign : std::min(least_foreign_, foreign);
  if (steady_above) {
    found.background = least_foreign_;
    above_.end();
  }

  const bool steady_below = below_.holds(below);
  const std::int64_t left = std::max<std::int64_t>(0, total - (mirror.fewest - background_));
  most_foreign_ = below_.begins() ? left : std::max(most_foreign_, left);
  if (steady_below && background_ > 0) {
    found.background = std::min(most_foreign_, background_);
    below_.end();
  } else if (steady_below) {
    found.mirror_too_high = true;
  }

  // A queue that only waits for prefill or for KV goes with a number of running sequences that changes.
  const bool queues = waiting > 0 && *engine.running < mirror.slots && mirror.most < mirror.slots && background_ == 0;
  if (*engine.running != queues_running_) queues_.end();
  queues_running_ = *engine.running;
  found.slots_too_many = queues_.holds(queues);

  const bool idles = mirror.waiting > 0 && waiting == 0 && mirror.fewest >= mirror.slots && below;
  found.slots_left_idle = idles_.holds(idles);
  return found;
}

}  // namespace balanceroute::proxy
