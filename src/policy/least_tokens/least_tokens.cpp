#include "policy/least_tokens/least_tokens.hpp"

#include "policy/immediate/least.hpp"

namespace balanceroute {

std::optional<WorkerId> LeastTokens::bind(const FleetView& fleet, const Candidate& candidate, Random& random) {
  return least_per_slot(fleet, candidate, random, [&fleet](const GroupView& group, std::size_t worker) {
    return load_at(fleet, group, worker).count();
  });
}

double LeastTokens::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate&) const {
  const GroupView& view = fleet.groups[group.value()];
  return -static_cast<double>(load_at(fleet, view, worker).count()) / view.slots[worker];
}

std::string_view LeastTokens::score_meaning() const {
  return "tokens running and queued per slot, negated";
}

}  // namespace balanceroute
