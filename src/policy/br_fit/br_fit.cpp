#include "policy/br_fit/br_fit.hpp"

namespace balanceroute {

BrFit::BrFit(const BrFitParams& params)
    : outlook_{params}, round_{params, outlook_, prompts_, ages_}, scorer_{params, outlook_, prompts_, ages_} {}

void BrFit::decide(const RoundInput& input, Random&, std::vector<Choice>& choices) {
  round_.decide(input, choices);
}

double BrFit::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate& candidate) const {
  return scorer_.score(fleet.groups[group.value()], worker, candidate);
}

std::string_view BrFit::score_meaning() const {
  return "squared tokens of distance from the loads that suit the group, now and ahead, weighted, that the admission "
         "of "
         "this request alone removes";
}

void BrFit::learned(const Candidate& candidate, Tokens generated, LeaseEnd how) {
  prompts_.add(candidate.weight);
  outlook_.ended({Tokens{0}, generated}, how);
  if (how == LeaseEnd::finished) ages_.finished(candidate.request.prompt, generated);
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

void BrFit::narrowed(RequestId request, Tokens generated) {
  if (const auto prompt = outlook_.prompt_of(request)) ages_.finished(*prompt, generated);
  outlook_.narrowed(request, generated);
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
