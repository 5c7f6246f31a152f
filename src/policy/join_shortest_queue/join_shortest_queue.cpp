#include "policy/join_shortest_queue/join_shortest_queue.hpp"

#include "policy/immediate/least.hpp"

namespace balanceroute {

std::optional<WorkerId> JoinShortestQueue::bind(const FleetView& fleet, const Candidate& candidate, Random& random) {
  return least_per_slot(fleet, candidate, random, [&fleet](const GroupView& group, std::size_t worker) {
    return sequences_at(fleet, group, worker);
  });
}

double JoinShortestQueue::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate&) const {
  return -sequences_per_slot(fleet, fleet.groups[group.value()], worker);
}

std::string_view JoinShortestQueue::score_meaning() const {
  return "sequences running and queued per slot, negated";
}

}  // namespace balanceroute
