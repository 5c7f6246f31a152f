#include "policy/round_robin/round_robin.hpp"

#include "policy/immediate/workers.hpp"

namespace balanceroute {

std::uint32_t RoundRobin::turns_until(const FleetView& fleet, WorkerId worker) const {
  const auto ids = static_cast<std::uint32_t>(fleet.queued.size());
  return worker.value() >= next_ ? worker.value() - next_ : worker.value() + ids - next_;
}

std::optional<WorkerId> RoundRobin::bind(const FleetView& fleet, const Candidate& candidate, Random&) {
  std::optional<WorkerId> first;
  for (const GroupView& group : fleet.groups) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!can_hold(group, i, candidate)) continue;
      const WorkerId worker = group.workers[i];
      if (!first || turns_until(fleet, worker) < turns_until(fleet, *first)) first = worker;
    }
  }
  if (first) next_ = first->value() + 1;
  return first;
}

double RoundRobin::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate&) const {
  return -static_cast<double>(turns_until(fleet, fleet.groups[group.value()].workers[worker]));
}

std::string_view RoundRobin::score_meaning() const {
  return "turns until its own, negated";
}

}  // namespace balanceroute
