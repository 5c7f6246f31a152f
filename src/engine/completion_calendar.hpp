// completion_calendar.hpp - which sequences end in a given step.
//
// A calendar queue with one bucket a step, folded onto a ring: an entry further away than the ring is long waits in its
// bucket and is looked at once a turn. Source: R. Brown, "Calendar queues", CACM 31(10), 1988.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/units.hpp"
#include "engine/index_lists.hpp"

namespace balanceroute::engine {

// CompletionCalendar holds indices, each due in one step.
//   Cost     schedule() and cancel() O(1); due() O(1 + entries due + entries scheduled / kRing).
//   Threads  not synchronised.
class CompletionCalendar {
 public:
  CompletionCalendar() : buckets_{kRing} {}

  void grow_to(std::size_t count) {
    if (count <= steps_.size()) return;
    steps_.resize(count);
    buckets_.grow_to(count);
  }

  void schedule(IndexLists::Index index, Steps step) {
    steps_[index] = step;
    buckets_.push_back(bucket(step), index);
  }

  // `index` is scheduled.
  void cancel(IndexLists::Index index) { buckets_.erase(bucket(steps_[index]), index); }

  // Removes what is due in `step` and appends it to `out`, in the order of scheduling.
  void take_due(Steps step, std::vector<IndexLists::Index>& out) {
    const std::size_t today = bucket(step);
    for (auto index = buckets_.front(today); index != IndexLists::kNone;) {
      const auto following = buckets_.next(index);
      if (steps_[index] == step) {
        buckets_.erase(today, index);
        out.push_back(index);
      }
      index = following;
    }
  }

 private:
  static constexpr std::size_t kRing = 1024;  // a power of two near common output lengths
  static std::size_t bucket(Steps step) { return static_cast<std::size_t>(step.count()) % kRing; }

  IndexLists buckets_;
  std::vector<Steps> steps_;
};

}  // namespace balanceroute::engine
