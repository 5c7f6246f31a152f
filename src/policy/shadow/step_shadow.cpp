#include "policy/shadow/step_shadow.hpp"

#include <algorithm>

#include "core/envelope.hpp"

namespace balanceroute {
namespace {

// An immediate policy is asked for the first of them only: later ones will be asked in later rounds.
constexpr std::size_t kBindings = 64;

}  // namespace

std::optional<WorkerId> StepShadow::choice(RequestId request) const {
  const auto planned = std::ranges::find(planned_, request, &std::pair<RequestId, WorkerId>::first);
  if (planned == planned_.end()) return std::nullopt;
  return planned->second;
}

void StepShadow::before(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet) {
  guard_.run_round([&] { plan(group, waiting, fleet); });
  asked_ = guard_.is_on();
}

void StepShadow::plan(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet) {
  loads_.assign(group.loads.begin(), group.loads.end());
  free_slots_.assign(group.free_slots.begin(), group.free_slots.end());
  kv_free_.assign(group.kv_free.begin(), group.kv_free.end());
  places_ = false;
  before_ = total_load(group.loads);
  if (waiting.empty()) return;
  if (policy_->binding() == Binding::pooled) {
    plan_round(group, waiting, fleet.groups);
  } else {
    plan_bindings(group, waiting, fleet);
  }
}

void StepShadow::plan_round(const GroupView& group, std::span<const Candidate> waiting,
                            std::span<const GroupView> groups) {
  choices_.clear();
  static_cast<PooledPolicy&>(*policy_).decide({.group = group, .pool = waiting, .groups = groups}, random_, choices_);
  for (const Choice& choice : choices_) place(group, choice.worker, waiting[choice.candidate]);
}

// What it has bound counts as queued for those that follow.
void StepShadow::plan_bindings(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet) {
  queued_.assign(fleet.queued.size(), Queued{});
  for (const Candidate& candidate : waiting.first(std::min(waiting.size(), kBindings))) {
    const auto worker = static_cast<ImmediatePolicy&>(*policy_).bind({fleet.groups, queued_}, candidate, random_);
    if (!worker) continue;
    Queued& queued = queued_[worker->value()];
    queued.load += candidate.weight;
    queued.kv += candidate.kv;
    queued.sequences += candidate.request.sequences;
    const auto position = std::ranges::find(group.workers, *worker);
    if (position == group.workers.end()) continue;  // of another group
    place(group, static_cast<std::size_t>(position - group.workers.begin()), candidate);
  }
}

// If there is room: as the ledger would refuse what does not fit.
void StepShadow::place(const GroupView& group, std::size_t worker, const Candidate& candidate) {
  const std::int32_t sequences = candidate.request.sequences;
  if (group.eligible[worker] == 0 || free_slots_[worker] < sequences || kv_free_[worker] < candidate.kv) return;
  loads_[worker] += candidate.weight;
  free_slots_[worker] -= sequences;
  kv_free_[worker] -= candidate.kv;
  planned_.emplace_back(candidate.request.id, group.workers[worker]);
  places_ = true;
}

void StepShadow::after(const GroupView& group) {
  if (!std::exchange(asked_, false)) return;
  if (group.size() != loads_.size() || (!places_ && total_load(group.loads) == before_)) return;
  const Tokens more = imbalance(group.loads) - imbalance(loads_);
  ++regret_.rounds;
  regret_.worse += more > Tokens{0} ? 1 : 0;
  regret_.regret += more;
}

}  // namespace balanceroute
