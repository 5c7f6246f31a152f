// workers.hpp - what immediate policies ask of workers: who may hold a request, and how much each has already.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/group_view.hpp"
#include "core/pool.hpp"

namespace balanceroute {

// Whether the worker may ever hold the request, now or after waiting in its queue.
[[nodiscard]] inline bool can_hold(const GroupView& group, std::size_t worker, const Candidate& candidate) {
  return group.eligible[worker] != 0 && group.is_large_enough(worker, candidate.request.sequences, candidate.kv);
}

[[nodiscard]] inline const Queued& queued_at(const FleetView& fleet, const GroupView& group, std::size_t worker) {
  return fleet.queued[group.workers[worker].value()];
}

// Sequences running, dispatched and queued.
[[nodiscard]] inline std::int64_t sequences_at(const FleetView& fleet, const GroupView& group, std::size_t worker) {
  return group.sequences[worker] + queued_at(fleet, group, worker).sequences;
}

[[nodiscard]] inline double sequences_per_slot(const FleetView& fleet, const GroupView& group, std::size_t worker) {
  return static_cast<double>(sequences_at(fleet, group, worker)) / group.slots[worker];
}

// The virtual load: tokens running, dispatched and queued.
[[nodiscard]] inline Tokens load_at(const FleetView& fleet, const GroupView& group, std::size_t worker) {
  return group.loads[worker] + queued_at(fleet, group, worker).load;
}

// A worker by its place.
struct Place {
  const GroupView* group;
  std::size_t position;

  [[nodiscard]] WorkerId worker() const { return group->workers[position]; }
};

// Workers of the whole fleet that can hold the candidate.
[[nodiscard]] inline std::uint64_t count_able(const FleetView& fleet, const Candidate& candidate) {
  std::uint64_t count = 0;
  for (const GroupView& group : fleet.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) count += can_hold(group, i, candidate) ? 1 : 0;
  }
  return count;
}

// The one of number `index` among them, which must exist.
[[nodiscard]] inline Place able_at(const FleetView& fleet, const Candidate& candidate, std::uint64_t index) {
  for (const GroupView& group : fleet.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (can_hold(group, i, candidate) && index-- == 0) return {&group, i};
    }
  }
  std::unreachable();
}

}  // namespace balanceroute
