#include "policy/br_fit/br_fit.hpp"

#include <algorithm>

namespace balanceroute {

BrFit::BrFit(const BrFitParams& params)
    : params_{params}, outlook_{params}, round_{params, outlook_, prompts_, ages_} {}

void BrFit::decide(const RoundInput& input, Random&, std::vector<Choice>& choices) {
  round_.decide(input, choices);
}

double BrFit::score(const FleetView& fleet, GroupId id, std::size_t worker, const Candidate& candidate) const {
  const GroupView& group = fleet.groups[id.value()];
  const auto workers = static_cast<double>(group.size());
  const auto size = static_cast<double>(candidate.weight.count());
  const auto total = static_cast<double>(total_load(group.loads).count());
  double prompts = 0;
  for (const WorkerId each : group.workers) prompts += outlook_.running_prompts(each);
  const double target = (total + size) / workers;
  const double ceiling =
      target + params_.ceiling_share * std::max(0.0, static_cast<double>(group.envelope().count()) - target);
  const double below = -fit_curvature(params_, prompts_, total / workers, total > 0 ? prompts / total : 0);
  const auto cost = [&](double distance) {
    return (distance > 0 ? params_.excess_weight : below) * distance * distance;
  };
  const double distance = static_cast<double>(group.loads[worker].count()) - ceiling;
  return cost(distance) - cost(distance + size);
}

std::string_view BrFit::score_meaning() const {
  return "squared tokens of distance from the load that suits the group, weighted, that the admission removes";
}

void BrFit::arrived(const Candidate& candidate) {
  prompts_.add(candidate.weight);
}

void BrFit::withdrawn(RequestId request) {
  round_.forget(request);
}

void BrFit::admitted(const Request& request, GroupId group, WorkerId worker) {
  round_.forget(request.id);
  outlook_.admitted(request, group, worker);
}

void BrFit::aged(RequestId request, Tokens generated) {
  outlook_.aged(request, generated);
}

void BrFit::left(RequestId request, Tokens generated, LeaseEnd how) {
  if (how == LeaseEnd::finished) {
    if (const auto prompt = outlook_.prompt_of(request)) ages_.finished(*prompt, generated);
  }
  outlook_.left(request, generated, how);
}

void BrFit::stepped(GroupId group, Steps steps) {
  outlook_.stepped(group, steps);
}

}  // namespace balanceroute
