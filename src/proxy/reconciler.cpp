#include "proxy/reconciler.hpp"

#include <algorithm>

namespace balanceroute::proxy {

namespace {

// An engine with less than this share of its KV space left keeps requests waiting for that.
constexpr double kFullKv = 0.9;

}  // namespace

bool Reconciler::Streak::holds(bool now, int readings) {
  if (!now) {
    length_ = 0;
    return false;
  }
  if (length_ <= readings) ++length_;
  return length_ == readings;
}

bool Reconciler::slots_too_many(const RankReading& engine, const MirrorWindow& mirror) {
  const std::int64_t running = engine.running.value_or(0);
  const bool waits = engine.waiting.value_or(0) > 0 && running < mirror.slots && background_ == 0;
  // A queue that only waits for prefill or for KV goes with a number of running sequences that changes.
  if (!waits || running != queue_running_) {
    queue_.end();
    full_queue_.end();
    queue_told_ = false;
  }
  queue_running_ = running;
  const bool has_kv = engine.kv_usage.value_or(0) < kFullKv;
  const bool before_free_slots = queue_.holds(waits && mirror.most < mirror.slots);
  const bool for_long = full_queue_.holds(waits && has_kv, kFullReadings);
  if (queue_told_ || !(before_free_slots || for_long)) return false;
  queue_told_ = true;
  return true;
}

Findings Reconciler::compare(const RankReading& engine, const MirrorWindow& mirror) {
  Findings found;
  if (!engine.running) {
    heard_nothing();
    return found;
  }
  const std::int64_t waiting = engine.waiting.value_or(0);
  const std::int64_t total = *engine.running + waiting;
  const std::int64_t slack = std::max<std::int64_t>(1, mirror.slots / 32);
  const bool above = total > mirror.most + slack;
  const bool below = total + slack < mirror.fewest;
  if (above || below) ++disagreements_;
  disagreeing_ = above || below ? std::min(disagreeing_ + 1, kFullReadings) : 0;

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

  found.slots_too_many = slots_too_many(engine, mirror);

  const bool idles = mirror.waiting > 0 && waiting == 0 && mirror.fewest >= mirror.slots && below;
  found.slots_left_idle = idles_.holds(idles);
  return found;
}

}  // namespace balanceroute::proxy
