#include "policy/random/random.hpp"

#include "policy/immediate/workers.hpp"

namespace balanceroute {

std::optional<WorkerId> RandomWorker::bind(const FleetView& fleet, const Candidate& candidate, Random& random) {
  const std::uint64_t able = count_able(fleet, candidate);
  if (able == 0) return std::nullopt;
  return able_at(fleet, candidate, random.below(able)).worker();
}

double RandomWorker::score(const FleetView& fleet, GroupId, std::size_t, const Candidate& candidate) const {
  const std::uint64_t able = count_able(fleet, candidate);
  return able == 0 ? 0 : 1 / static_cast<double>(able);
}

std::string_view RandomWorker::score_meaning() const {
  return "the chance to be drawn, the same for each worker";
}

}  // namespace balanceroute
