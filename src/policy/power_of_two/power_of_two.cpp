#include "policy/power_of_two/power_of_two.hpp"

#include "policy/immediate/workers.hpp"

namespace balanceroute {

std::optional<WorkerId> PowerOfTwo::bind(const FleetView& fleet, const Candidate& candidate, Random& random) {
  const std::uint64_t able = count_able(fleet, candidate);
  if (able == 0) return std::nullopt;
  const std::uint64_t first = random.below(able);
  const Place one = able_at(fleet, candidate, first);
  if (able == 1) return one.worker();
  // The second is drawn from the others, so equal ones need no further lot: the first is any of the two.
  const std::uint64_t second = random.below(able - 1);
  const Place other = able_at(fleet, candidate, second < first ? second : second + 1);
  const std::int64_t here = sequences_at(fleet, *one.group, one.position) * other.group->slots[other.position];
  const std::int64_t there = sequences_at(fleet, *other.group, other.position) * one.group->slots[one.position];
  return (there < here ? other : one).worker();
}

double PowerOfTwo::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate&) const {
  return -sequences_per_slot(fleet, fleet.groups[group.value()], worker);
}

std::string_view PowerOfTwo::score_meaning() const {
  return "sequences running and queued per slot, negated; the better of two workers drawn by lot is taken";
}

}  // namespace balanceroute
