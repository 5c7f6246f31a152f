// step_clock.hpp - how many decode steps each group has taken, as its streams show it.
//
// A group's workers step together and every running sequence gets one token a step, so the number of steps is the
// largest, over the group's streams, of (the step at which the stream began + its tokens). Each I/O thread keeps the
// largest it has seen in a cell of its own; the deciding thread reads them all.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>

#include "core/ids.hpp"
#include "core/units.hpp"

namespace balanceroute::proxy {

// StepClock counts the steps of each group of one fleet.
//   Cost     report() is one load and at most one store, on a cache line that no other thread writes.
//   Threads  report(thread, ...) only from that I/O thread; now() from any.
class StepClock {
 public:
  StepClock(std::size_t threads, std::size_t groups)
      : threads_{threads}, groups_{groups}, cells_{std::make_unique<Cell[]>(threads * groups)} {}

  // The largest step any thread has seen.
  Steps now(GroupId group) const {
    std::int64_t latest = 0;
    for (std::size_t t = 0; t < threads_; ++t) {
      latest = std::max(latest, cells_[t * groups_ + group.value()].step.load(std::memory_order_relaxed));
    }
    return Steps{latest};
  }

  // A stream on this thread has reached this step.
  void report(std::size_t thread, GroupId group, Steps step) {
    std::atomic<std::int64_t>& cell = cells_[thread * groups_ + group.value()].step;
    if (step.count() > cell.load(std::memory_order_relaxed)) cell.store(step.count(), std::memory_order_relaxed);
  }

 private:
  struct alignas(64) Cell {
    std::atomic<std::int64_t> step{0};
  };

  std::size_t threads_;
  std::size_t groups_;
  std::unique_ptr<Cell[]> cells_;
};

// StreamSteps finds at which of its group's steps a stream began, so that step - begin() tells its tokens at any time.
//   First     its first event is taken for a part of the latest step that was shown: to take it for a new one would put
//             the clock ahead of the engine by a step with many an admission.
//   Mending   where the other streams show that step only afterwards, all its later events lag behind the clock. The
//             least lag of its next kLooks events, at most the tokens of the first one, is taken off once. A client
//             that reads slowly lags too, so more is not believed.
//   Error     none or one event's tokens too many: a late one that is first to show another step, too, stays ahead. A
//             sequence that the engine preempts is ahead until it ends.
//   Threads   the stream's own.
class StreamSteps {
 public:
  static constexpr int kLooks = 8;

  // The stream has brought so many tokens in all, more than before, while the clock shows `now`. Its beginning, when
  // that is new or mended.
  std::optional<Steps> take(Steps now, Steps tokens) {
    if (!begin_) {
      begin_ = now - tokens;
      most_ = tokens;
      return begin_;
    }
    if (looks_ == kLooks) return std::nullopt;
    least_lag_ = std::min(least_lag_, now - (*begin_ + tokens));
    if (++looks_ < kLooks || least_lag_ <= Steps{0}) return std::nullopt;
    begin_ = *begin_ + std::min(least_lag_, most_);
    return begin_;
  }

  // Once it has begun.
  [[nodiscard]] Steps begin() const { return *begin_; }

 private:
  std::optional<Steps> begin_;
  Steps most_{0};
  Steps least_lag_{std::numeric_limits<std::int64_t>::max()};
  int looks_ = 0;
};

}  // namespace balanceroute::proxy
