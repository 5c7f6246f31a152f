#include "policy/br_0/br_0.hpp"

namespace balanceroute {

void Br0::decide(const RoundInput& input, Random&, std::vector<Choice>& choices) {
  rounds_.decide(input, choices);
}

double Br0::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate& candidate) const {
  const GroupView& view = fleet.groups[group.value()];
  const Tokens margin = view.envelope() - view.loads[worker];
  return static_cast<double>(br_0_score(candidate.weight, margin, view.size()).count());
}

std::string_view Br0::score_meaning() const {
  return "tokens of imbalance that the admission removes";
}

}  // namespace balanceroute
