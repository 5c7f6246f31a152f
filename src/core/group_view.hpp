// group_view.hpp - what a policy sees of the fleet: the ledger's own arrays, read-only, uncopied.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/envelope.hpp"
#include "core/ids.hpp"
#include "core/units.hpp"

namespace balanceroute {

// KV space of a worker without a limit; far from overflow when charged.
inline constexpr Tokens kUnlimitedKv{std::int64_t{1} << 60};

// GroupView is one group as it stands now: an entry per worker attached to the barrier (ready or draining), by
// position.
//   Units    loads in tokens a step; slots and sequences in sequences; KV space in tokens resident.
//   Shape    all spans have size() entries; positions follow WorkerId order.
//   Valid    until the ledger it came from changes.
struct GroupView {
  GroupId group;
  std::span<const WorkerId> workers;
  std::span<const Tokens> loads;
  std::span<const std::int32_t> slots;
  std::span<const std::int32_t> free_slots;
  std::span<const std::int32_t> sequences;  // dispatched and running
  // KV space that admissions may take: neither charged to a request nor in reserve; below zero where requests outgrew
  // it, kUnlimitedKv without a limit.
  std::span<const Tokens> kv_free;
  std::span<const Tokens> kv_space;        // the same of an idle worker
  std::span<const std::uint8_t> eligible;  // 1: takes admissions

  // G, everything that waits at the barrier.
  [[nodiscard]] std::size_t size() const { return workers.size(); }
  [[nodiscard]] Tokens envelope() const { return largest_load(loads); }

  // Whether the worker, ready or not, could take so much if it were idle.
  [[nodiscard]] bool is_large_enough(std::size_t position, std::int32_t sequence_count, Tokens kv) const {
    return slots[position] >= sequence_count && kv_space[position] >= kv;
  }

  // Whether it can take so much now.
  [[nodiscard]] bool has_room(std::size_t position, std::int32_t sequence_count, Tokens kv = Tokens{0}) const {
    return eligible[position] != 0 && free_slots[position] >= sequence_count && kv_free[position] >= kv;
  }
};

// Queued is what waits in one worker's own queue, bound to it but not yet admitted.
struct Queued {
  Tokens load{0};
  Tokens kv{0};
  std::int64_t sequences = 0;
};

// FleetView is all groups, and what is queued at each worker (by WorkerId value).
struct FleetView {
  std::span<const GroupView> groups;
  std::span<const Queued> queued;
};

}  // namespace balanceroute
