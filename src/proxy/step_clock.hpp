// step_clock.hpp - how many decode steps each group has taken, as its streams show it.
//
// A group's workers step together and every running sequence gets one token a step, so the number of steps is the
// largest, over the group's streams, of (the step at which the stream began + its tokens). Each I/O thread keeps the
// largest it has seen in a cell of its own; the deciding thread reads them all, and tells the pace.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/ids.hpp"
#include "core/units.hpp"
#include "net/clock.hpp"

namespace balanceroute::proxy {

// The latest step of a group, and when a stream showed it first.
struct ShownStep {
  Steps step{0};
  net::TimePoint since{};
};

// StepClock counts the steps of each group of one fleet.
//   Cost     report() is one load and at most two stores, on a cache line that no other thread writes.
//   Threads  report(thread, ...) only from that I/O thread; set_half_step() from one thread; the others from any. The
//            time in latest() may be that of a step that is being reported.
class StepClock {
 public:
  StepClock(std::size_t threads, std::size_t groups)
      : threads_{threads},
        groups_{groups},
        cells_{std::make_unique<Cell[]>(threads * groups)},
        half_steps_{std::make_unique<std::atomic<net::Duration::rep>[]>(groups)} {}

  // The largest step any thread has seen.
  ShownStep latest(GroupId group) const {
    ShownStep latest;
    for (std::size_t t = 0; t < threads_; ++t) {
      const Cell& cell = cells_[t * groups_ + group.value()];
      const Steps step{cell.step.load(std::memory_order_acquire)};
      const net::TimePoint since{net::Duration{cell.since.load(std::memory_order_relaxed)}};
      if (step > latest.step || (step == latest.step && since < latest.since)) latest = {step, since};
    }
    return latest;
  }

  // The largest step that a stream may show now whose beginning is not sure: it may have been read late, and then has
  // more tokens than there were steps since. One more than the latest, when half a step has passed.
  Steps limit(GroupId group, net::TimePoint now) const {
    const ShownStep shown = latest(group);
    const net::Duration half{half_steps_[group.value()].load(std::memory_order_relaxed)};
    return now - shown.since < half ? shown.step : shown.step + Steps{1};
  }

  // Half of the time that the group's steps take now; zero where a stream may show as many as it has.
  void set_half_step(GroupId group, net::Duration half) {
    half_steps_[group.value()].store(half.count(), std::memory_order_relaxed);
  }

  // A stream on this thread has reached this step, now.
  void report(std::size_t thread, GroupId group, Steps step, net::TimePoint now) {
    Cell& cell = cells_[thread * groups_ + group.value()];
    if (step.count() <= cell.step.load(std::memory_order_relaxed)) return;
    cell.since.store(now.time_since_epoch().count(), std::memory_order_relaxed);
    cell.step.store(step.count(), std::memory_order_release);
  }

 private:
  struct alignas(64) Cell {
    std::atomic<std::int64_t> step{0};
    std::atomic<net::Duration::rep> since{0};
  };

  std::size_t threads_;
  std::size_t groups_;
  std::unique_ptr<Cell[]> cells_;
  std::unique_ptr<std::atomic<net::Duration::rep>[]> half_steps_;  // by GroupId
};

}  // namespace balanceroute::proxy
