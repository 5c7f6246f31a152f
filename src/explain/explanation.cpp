#include "explain/explanation.hpp"

#include <unordered_map>

namespace balanceroute::explain {

namespace {

// Position of each worker in Explanation::workers.
using Positions = std::unordered_map<WorkerId, std::size_t>;

Positions list_workers(const Router& router, Explanation& out) {
  Positions positions;
  const Ledger& ledger = router.ledger();
  for (const GroupView& group : ledger.groups()) {
    for (std::size_t w = 0; w < group.size(); ++w) {
      const WorkerRecord worker = ledger.worker(group.workers[w]);
      positions[worker.id] = out.workers.size();
      out.workers.push_back({.group = std::string{ledger.group_name(group.group)},
                             .url = worker.key.url,
                             .rank = worker.key.rank,
                             .takes_requests = group.eligible[w] != 0,
                             .free_slots = group.free_slots[w],
                             .load = group.loads[w],
                             .margin = group.envelope() - group.loads[w]});
    }
  }
  return positions;
}

// By predictions, or as br_fit does from all that it hears.
bool learns(const Policy& policy) {
  return policy.prediction_report().has_value() || policy.name() == "br_fit";
}

ExplainedRequest score(const Router& router, const WaitingState& one, RequestId id, const Positions& positions) {
  ExplainedRequest out{.request = one.request,
                       .prompt = one.prompt,
                       .sequences = one.sequences,
                       .scores = std::vector<double>(positions.size()),
                       .refused = std::nullopt};
  const Request request{.id = id,
                        .prompt = Tokens{one.prompt},
                        .sequences = static_cast<std::int32_t>(one.sequences),
                        .output_limit = Tokens{one.output_limit},
                        .priority = static_cast<std::int32_t>(one.priority)};
  for (const GroupView& group : router.ledger().groups()) {
    for (const WorkerScore& worker : router.explain(group.group, request)) {
      out.scores[positions.at(worker.worker)] = worker.score;
    }
  }
  return out;
}

}  // namespace

std::expected<Explanation, std::string> explain(const FleetState& state) {
  auto model = make_fleet(state);
  if (!model) return std::unexpected(model.error());
  Router& router = *model->router;
  Explanation out{.fleet = state.fleet,
                  .policy = std::string{router.policy().name()},
                  .score_meaning = std::string{router.policy().score_meaning()},
                  .learns = learns(router.policy()),
                  .workers = {},
                  .requests = {},
                  .admissions = {}};
  const Positions workers = list_workers(router, out);
  std::unordered_map<RequestId, std::size_t> requests;
  for (std::size_t i = 0; i < state.waiting.size(); ++i) {
    requests[model->waiting[i]] = i;
    out.requests.push_back(score(router, state.waiting[i], model->waiting[i], workers));
    out.requests.back().refused = model->refused[i];
  }
  for (const Admission& admission : router.round_all(true)) {
    ExplainedAdmission& one =
        out.admissions.emplace_back(ExplainedAdmission{.request = requests.at(admission.request.id),
                                                       .worker = workers.at(admission.worker),
                                                       .stage = admission.stage,
                                                       .set_size = admission.set_size,
                                                       .score = admission.score,
                                                       .margin = admission.margin,
                                                       .runner_up = std::nullopt});
    if (admission.runner_up) one.runner_up = {workers.at(admission.runner_up->worker), admission.runner_up->score};
  }
  return out;
}

}  // namespace balanceroute::explain
