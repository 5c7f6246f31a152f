// step_calendar.hpp - what is due in a given step.
//
// A calendar queue with one bucket a step, folded onto a ring: an entry further away than the ring is long waits in its
// bucket and is looked at once a turn. Source: R. Brown, "Calendar queues", CACM 31(10), 1988.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/index_lists.hpp"
#include "core/units.hpp"

namespace balanceroute {

// StepCalendar holds indices, each due in one step of one clock; groups that step on their own are clocks.
//   Cost     schedule() and cancel() O(1); take_due() O(1 + entries due + entries of that clock / kRing). Memory is
//   taken
//            as it is needed.
//   Threads  not synchronised.
class StepCalendar {
 public:
  using Index = IndexLists::Index;

  // `index` is not scheduled.
  void schedule(Index index, Steps step, std::size_t clock = 0) {
    if (index >= days_.size()) {
      days_.resize(std::size_t{index} + 1);
      buckets_.grow_to(days_.size());
    }
    buckets_.grow_lists_to((clock + 1) * kRing);
    days_[index] = {step, bucket(step, clock)};
    buckets_.push_back(days_[index].bucket, index);
  }

  // `index` is scheduled.
  void cancel(Index index) { buckets_.erase(days_[index].bucket, index); }

  // Removes what is due in `step` and appends it to `out`, in the order of scheduling.
  void take_due(Steps step, std::vector<Index>& out, std::size_t clock = 0) {
    const std::size_t today = bucket(step, clock);
    if (today >= buckets_.lists()) return;
    for (auto index = buckets_.front(today); index != IndexLists::kNone;) {
      const auto following = buckets_.next(index);
      if (days_[index].step == step) {
        buckets_.erase(today, index);
        out.push_back(index);
      }
      index = following;
    }
  }

 private:
  static constexpr std::size_t kRing = 1024;  // a power of two near common output lengths
  static std::size_t bucket(Steps step, std::size_t clock) {
    return clock * kRing + static_cast<std::size_t>(step.count()) % kRing;
  }

  struct Day {
    Steps step{0};
    std::size_t bucket = 0;
  };

  IndexLists buckets_;
  std::vector<Day> days_;
};

}  // namespace balanceroute
