#include "policy/least_tokens/least_tokens.hpp"

#include "policy/immediate/least.hpp"

namespace balanceroute {
namespace {

std::int64_t tokens_at(const FleetView& fleet, const GroupView& group, std::size_t worker) {
  return (group.loads[worker] + fleet.queued[group.workers[worker].value()].load).count();
}

}  // namespace

std::optional<WorkerId> LeastTokens::bind(const FleetView& fleet, const Candidate& candidate, Random& random) {
  return least_per_slot(fleet, candidate, random, [&fleet](const GroupView& group, std::size_t worker) {
    return tokens_at(fleet, group, worker);
  });
}

double LeastTokens::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate&) const {
  const GroupView& view = fleet.groups[group.value()];
  return -static_cast<double>(tokens_at(fleet, view, worker)) / view.slots[worker];
}

std::string_view LeastTokens::score_meaning() const {
  return "tokens running and queued per slot, negated";
}

}  // namespace balanceroute
