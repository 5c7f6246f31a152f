// least.hpp - the choice shared by count-based policies: the worker with the least of something for its size.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/group_view.hpp"
#include "core/ids.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "policy/immediate/workers.hpp"

namespace balanceroute {

// The worker of the whole fleet with the least amount(group, position) per slot; equal ones draw lots.
// Amounts per slot are compared as products, exactly.
template <std::invocable<const GroupView&, std::size_t> Amount>
[[nodiscard]] std::optional<WorkerId> least_per_slot(const FleetView& fleet, const Candidate& candidate, Random& random,
                                                     Amount amount) {
  std::optional<WorkerId> best;
  std::int64_t best_amount = 0;
  std::int64_t best_slots = 1;
  std::uint64_t equal = 0;
  for (const GroupView& group : fleet.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!can_hold(group, i, candidate)) continue;
      const std::int64_t its_amount = amount(group, i);
      const std::int64_t its_slots = group.slots[i];
      const auto order = its_amount * best_slots <=> best_amount * its_slots;
      if (best && order > 0) continue;
      equal = best && order == 0 ? equal + 1 : 1;
      if (equal > 1 && random.below(equal) != 0) continue;  // each of n equal ones stays with chance 1/n
      best = group.workers[i];
      best_amount = its_amount;
      best_slots = its_slots;
    }
  }
  return best;
}

}  // namespace balanceroute
