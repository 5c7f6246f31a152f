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
#include <memory>

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

}  // namespace balanceroute::proxy
