#include "policy/router.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <tuple>
#include <utility>

namespace balanceroute {
namespace {

constexpr std::uint32_t kInPool = std::numeric_limits<std::uint32_t>::max();
constexpr std::uint32_t kParked = kInPool - 1;

SubmitError as_submit_error(RequestError error) {
  switch (error) {
    case RequestError::NoSequence:
      return SubmitError::NoSequence;
    case RequestError::NegativeTokens:
      return SubmitError::NegativeTokens;
    case RequestError::TooManyTokens:
      return SubmitError::TooManyTokens;
  }
  std::unreachable();
}

std::int64_t total(std::span<const std::int32_t> values) {
  return std::accumulate(values.begin(), values.end(), std::int64_t{0});
}

}  // namespace

Router::Router(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, const RouterSettings& settings)
    : listener_{settings.listener},
      ledger_{std::move(fleet), settings.books},
      patience_{settings.max_wait},
      policy_{std::move(policy)},
      random_{seed} {
  assert(policy_ != nullptr);
  ledger_.observe(*this);
}

void Router::set_now(std::chrono::nanoseconds now) {
  assert(now >= now_);
  now_ = now;
}

// --- what the policy is told ---

void Router::taken(const Request& request, WorkerId worker) {
  tell_policies([&](Policy& policy) { policy.admitted(request, ledger_.group_of(worker), worker); });
}

void Router::aged(RequestId request, Tokens generated) {
  tell(router_event::Aged{request, generated});
  tell_policies([&](Policy& policy) { policy.aged(request, generated); });
}

void Router::narrowed(const Request& request, Tokens generated) {
  tell(router_event::Narrowed{request.id, generated});
  eligibility_.narrowed(request);
  tell_policies([&](Policy& policy) { policy.narrowed(request.id, generated); });
}

void Router::ended(const Request& request, Tokens generated, LeaseEnd how) {
  tell(router_event::Ended{request.id, generated, how});
  eligibility_.left(request);
  tell_policies([&](Policy& policy) { policy.left(request.id, generated, how); });
}

void Router::advance(GroupId group, Steps steps) {
  tell(router_event::Advanced{group, steps});
  ledger_.advance(group, steps);
  tell_policies([&](Policy& policy) { policy.stepped(group, steps); });
}

// Tells a policy that takes over what is there.
void Router::brief(Policy& policy, std::span<const Candidate> waiting) const {
  for (const LeaseRecord& lease : ledger_.leases()) {
    policy.admitted(lease.request, ledger_.group_of(lease.worker), lease.worker);
    if (lease.state == LeaseState::running) policy.aged(lease.request.id, lease.generated);
  }
  for (const Candidate& candidate : waiting) policy.arrived(candidate);
}

void Router::learn(const Request& request, Tokens generated, LeaseEnd how) {
  tell(router_event::Learned{request, generated, how});
  const Candidate candidate = candidate_of(request);
  tell_policies([&](Policy& policy) { policy.learned(candidate, generated, how); });
}

// --- membership ---

TenantId Router::add_tenant(const TenantTerms& terms) {
  tell(router_event::TenantAdded{terms});
  return eligibility_.add_tenant(terms);
}

void Router::set_terms(TenantId tenant, const TenantTerms& terms) {
  tell(router_event::TermsChanged{tenant, terms});
  eligibility_.set_terms(tenant, terms);
}

GroupId Router::add_group(std::string name, bool barrier) {
  tell(router_event::GroupAdded{name, barrier});
  kept_.emplace_back();
  return ledger_.add_group(std::move(name), barrier);
}

std::expected<WorkerId, WorkerError> Router::add_worker(GroupId group, std::string url, std::int32_t rank,
                                                        WorkerSlots slots, const KvSpace& kv, WorkerState state) {
  tell(router_event::WorkerAdded{group, url, rank, slots, kv, state});
  const auto added = ledger_.add_worker(group, std::move(url), rank, slots, kv, state);
  if (!added) return added;
  queues_.emplace_back();
  queued_.emplace_back();
  rebind();
  return added;
}

std::expected<void, WorkerError> Router::drain(WorkerId worker) {
  tell(router_event::WorkerChanged{worker, router_event::Change::drain});
  const auto done = ledger_.drain(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::resume(WorkerId worker) {
  tell(router_event::WorkerChanged{worker, router_event::Change::resume});
  const auto done = ledger_.resume(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::limit(WorkerId worker, std::optional<std::int32_t> sequences) {
  tell(router_event::WorkerLimited{worker, sequences});
  return ledger_.limit(worker, sequences);
}

std::expected<void, WorkerError> Router::restart(WorkerId worker) {
  tell(router_event::WorkerChanged{worker, router_event::Change::restart});
  const auto done = ledger_.restart(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::declare_dead(WorkerId worker) {
  tell(router_event::WorkerChanged{worker, router_event::Change::declare_dead});
  const auto done = ledger_.declare_dead(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::remove(WorkerId worker) {
  tell(router_event::WorkerChanged{worker, router_event::Change::remove});
  const auto done = ledger_.remove(worker);
  if (done) rebind();
  return done;
}

// Finds a new place for each request that waits where it cannot be served: in the queue of a worker that takes no
// admissions, or in the pool under an immediate policy.
void Router::rebind() {
  moving_.clear();
  if (policy_->binding() == Binding::immediate) {
    const auto unbound = pool_.candidates();
    moving_.assign(unbound.begin(), unbound.end());
    pool_.clear();
  }
  for (std::uint32_t i = 0; i < queues_.size(); ++i) {
    if (!queues_[i].empty() && !ledger_.worker(WorkerId{i}).eligible) take_queue(WorkerId{i});
  }
  std::ranges::sort(moving_, goes_before);
  for (const Candidate& candidate : moving_) place(candidate);
}

void Router::take_queue(WorkerId worker) {
  Pool& queue = queues_[worker.value()];
  const auto all = queue.candidates();
  moving_.insert(moving_.end(), all.begin(), all.end());
  queue.clear();
  queued_[worker.value()] = {};
}

// --- requests ---

std::optional<SubmitError> Router::obstacle(const Request& request) const {
  if (const auto sizes = check(request); !sizes) return as_submit_error(sizes.error());
  if (waiting_.find(request.id) || ledger_.worker_of(request.id)) return SubmitError::AlreadyKnown;
  if (const auto error = eligibility_.obstacle(request)) return error;
  return without_taker(request);
}

// Why no worker can take the request, even after waiting.
std::optional<SubmitError> Router::without_taker(const Request& request) const {
  const Tokens kv = ledger_.kv_on_entry(request);
  bool any = false;
  bool wide_enough = false;
  bool large_enough = false;
  for (const GroupView& group : ledger_.groups()) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      any = true;
      wide_enough = wide_enough || group.slots[i] >= request.sequences;
      if (!group.is_large_enough(i, request.sequences, kv)) continue;
      if (group.eligible[i] != 0) return std::nullopt;
      large_enough = true;
    }
  }
  if (!any || large_enough) return SubmitError::NoWorkerReady;
  return wide_enough ? SubmitError::ExceedsKvSpace : SubmitError::TooManySequences;
}

Candidate Router::candidate_of(const Request& request) const {
  return {
      .request = request, .weight = ledger_.load_model().weight_on_entry(request), .kv = ledger_.kv_on_entry(request)};
}

std::expected<void, SubmitError> Router::submit(const Request& request) {
  tell(router_event::Submitted{request});
  if (const auto error = obstacle(request)) return std::unexpected(*error);
  if (eligibility_.enters(request)) {
    enter(request);
  } else {
    waiting_.insert(request.id, kParked);
  }
  return {};
}

void Router::enter(const Request& request) {
  Candidate candidate = candidate_of(request);
  candidate.serial = next_serial_++;
  candidate.since = now_;
  eligibility_.give_turn(candidate);
  entered_.push_back({request.id, candidate.serial, now_});
  tell_policies([&](Policy& policy) { policy.arrived(candidate); });
  place(candidate);
}

void Router::place(const Candidate& candidate) {
  std::optional<WorkerId> worker;
  if (policy_->binding() == Binding::immediate) {
    guarded([&] { worker = static_cast<ImmediatePolicy&>(*policy_).bind(fleet_view(), candidate, random_); });
  }
  if (!worker) {
    pool_.insert(candidate);
    waiting_.assign(candidate.request.id, kInPool);
    return;
  }
  queues_[worker->value()].insert(candidate);
  count_queued(*worker, candidate, 1);
  waiting_.assign(candidate.request.id, worker->value());
}

// Adds a candidate to what is queued at the worker, or takes it away.
void Router::count_queued(WorkerId worker, const Candidate& candidate, std::int64_t sign) {
  Queued& queued = queued_[worker.value()];
  queued.load += candidate.weight * sign;
  queued.kv += candidate.kv * sign;
  queued.sequences += candidate.request.sequences * sign;
}

bool Router::withdraw(RequestId request) {
  const auto where = waiting_.find(request);
  if (!where) return false;
  tell(router_event::Withdrawn{request});
  waiting_.erase(request);
  if (*where == kParked) return eligibility_.withdraw_parked(request);
  Pool& place = *where == kInPool ? pool_ : queues_[*where];
  const std::size_t position = *place.find(request);
  const Candidate& leaving = place.candidates()[position];
  if (*where != kInPool) count_queued(WorkerId{*where}, leaving, -1);
  eligibility_.withdrawn(leaving);
  place.erase(position);
  tell_policies([&](Policy& policy) { policy.withdrawn(request); });
  return true;
}

std::expected<Lease, AdmitError> Router::adopt(WorkerId worker, const Request& request) {
  tell(router_event::Adopted{worker, request});
  if (waiting_.find(request.id)) return std::unexpected(AdmitError::AlreadyAdmitted);
  auto lease = ledger_.reserve(worker, request);
  if (!lease) return lease;
  eligibility_.joined(request);
  lease->started();
  return lease;
}

void Router::set_policy(std::unique_ptr<Policy> policy, const PolicyParams& settings) {
  assert(policy != nullptr);
  tell(router_event::PolicyChanged{settings});
  patience_.set(settings.max_wait());
  policy_ = std::move(policy);
  resting_.reset();
  collect_waiting();
  brief(*policy_, moving_);
  place_collected();
}

void Router::degrade(std::unique_ptr<Policy> simpler, const PolicyParams& settings) {
  assert(simpler != nullptr);
  tell(router_event::PolicyChanged{settings, router_event::PolicyTurn::degraded});
  if (!resting_) resting_ = std::move(policy_);
  policy_ = std::move(simpler);
  collect_waiting();
  brief(*policy_, moving_);
  place_collected();
}

void Router::restore() {
  if (!resting_) return;
  tell(router_event::PolicyChanged{{}, router_event::PolicyTurn::restored});
  policy_ = std::move(resting_);
  collect_waiting();
  place_collected();
}

void Router::set_shadow(std::unique_ptr<StepShadow> shadow) {
  assert(shadow == nullptr || (waiting() == 0 && ledger_.live_leases() == 0));
  shadow_ = std::move(shadow);
}

// Takes all that wait out of their places, in the order of their turns.
void Router::collect_waiting() {
  const auto in_pool = pool_.candidates();
  moving_.assign(in_pool.begin(), in_pool.end());
  pool_.clear();
  for (std::uint32_t i = 0; i < queues_.size(); ++i) take_queue(WorkerId{i});
  std::ranges::sort(moving_, goes_before);
}

void Router::place_collected() {
  for (const Candidate& candidate : moving_) place(candidate);
}

// --- rounds ---

std::span<Admission> Router::round(GroupId group, bool explain) {
  admissions_.clear();
  begin_round();
  serve(group, explain);
  tell(router_event::Decided{group, admissions_});
  return admissions_;
}

std::span<Admission> Router::round_all(bool explain) {
  admissions_.clear();
  begin_round();
  visits_.clear();
  for (const GroupView& group : ledger_.groups()) {
    if (group.size() > 0) visits_.push_back(group.group);
  }
  std::ranges::sort(visits_, {}, [this](GroupId id) {
    const GroupView& group = ledger_.view(id);
    return std::pair{static_cast<double>(total_load(group.loads).count()) / static_cast<double>(total(group.slots)),
                     id};
  });
  for (const GroupId group : visits_) serve(group, explain);
  tell(router_event::Decided{std::nullopt, admissions_});
  return admissions_;
}

void Router::begin_round() {
  if (shadow_) shadow_->begin_round();
  while (const auto request = eligibility_.release_parked()) enter(*request);
  mark_late();
}

void Router::mark_late() {
  const auto limit = patience_.limit(now_, waiting() - parked());
  for (; !entered_.empty(); entered_.pop_front()) {
    const Entered& oldest = entered_.front();
    const auto where = waiting_.find(oldest.request);
    if (!where || *where == kParked) continue;
    if (now_ - oldest.at <= limit) return;
    Pool& place = *where == kInPool ? pool_ : queues_[*where];
    const std::size_t position = *place.find(oldest.request);
    Candidate candidate = place.candidates()[position];
    if (candidate.serial != oldest.serial) continue;  // it left, and came again
    candidate.late = true;
    place.erase(position);
    place.insert(candidate);
  }
}

void Router::serve(GroupId group, bool explain) {
  guarded([&] { decide(group, explain); });
  if (shadow_) shadow_->after(ledger_.view(group));
}

void Router::decide(GroupId group, bool explain) {
  if (policy_->binding() == Binding::pooled) {
    decide_from_pool(group, static_cast<PooledPolicy&>(*policy_), explain);
  } else {
    serve_queues(group, static_cast<const ImmediatePolicy&>(*policy_), explain);
  }
}

void Router::ask_shadow(const GroupView& group) {
  const auto pooled = pool_.candidates();
  seen_.assign(pooled.begin(), pooled.end());
  for (const Pool& queue : queues_) {
    const auto queued = queue.candidates();
    seen_.insert(seen_.end(), queued.begin(), queued.end());
  }
  std::ranges::sort(seen_, goes_before);
  shadow_->before(group, seen_, fleet_view());
}

void Router::decide_from_pool(GroupId group, PooledPolicy& policy, bool explain) {
  place_late(group, policy);
  if (pool_.empty()) return;
  choices_.clear();
  const GroupView view = without_kept(group);
  if (shadow_) ask_shadow(view);
  policy.decide({.group = view, .pool = pool_.candidates(), .explain = explain, .groups = ledger_.groups()}, random_,
                choices_);
  taken_.clear();
  for (const Choice& choice : choices_) {
    if (admit(group, pool_.candidates()[choice.candidate], choice)) taken_.push_back(choice.candidate);
  }
  std::ranges::sort(taken_);
  pool_.take(taken_);
}

// Late candidates go first, each to the least loaded worker that has room.
void Router::place_late(GroupId group, const PooledPolicy& policy) {
  kept_[group.value()].now = false;
  while (!pool_.empty() && pool_.candidates().front().late) {
    const Candidate next = pool_.candidates().front();
    const GroupView& view = ledger_.view(group);
    std::optional<std::size_t> taker;
    for (std::size_t worker = 0; worker < view.size(); ++worker) {
      if (!view.has_room(worker, next.request.sequences, next.kv)) continue;
      if (!taker || view.loads[worker] < view.loads[*taker]) taker = worker;
    }
    if (!taker) return keep_worker_for(group, next);
    const Choice choice{.candidate = 0,
                        .worker = *taker,
                        .stage = Stage::late,
                        .score = policy.score(fleet_view(), group, *taker, next),
                        .margin = view.envelope() - view.loads[*taker]};
    if (!admit(group, next, choice)) return;
    pool_.erase(0);
  }
}

// The same worker as in the last round, so that it empties; else the one that seems nearest to having room.
void Router::keep_worker_for(GroupId group, const Candidate& candidate) {
  const GroupView& view = ledger_.view(group);
  Kept& kept = kept_[group.value()];
  std::optional<std::size_t> best;
  for (std::size_t worker = 0; worker < view.size(); ++worker) {
    if (view.eligible[worker] == 0) continue;
    if (!view.is_large_enough(worker, candidate.request.sequences, candidate.kv)) continue;
    if (candidate.serial == kept.serial && view.workers[worker] == kept.worker) {
      best = worker;
      break;
    }
    if (!best || std::tuple{view.free_slots[worker], view.kv_free[worker], view.loads[*best]} >
                     std::tuple{view.free_slots[*best], view.kv_free[*best], view.loads[worker]}) {
      best = worker;
    }
  }
  if (!best) return;
  kept = {.worker = view.workers[*best], .serial = candidate.serial, .now = true};
}

// The group as a policy may use it.
GroupView Router::without_kept(GroupId group) {
  GroupView view = ledger_.view(group);
  const Kept& kept = kept_[group.value()];
  if (!kept.now) return view;
  eligible_.assign(view.eligible.begin(), view.eligible.end());
  eligible_[*ledger_.position(kept.worker)] = 0;
  view.eligible = eligible_;
  return view;
}

// Each worker takes from the front of its own queue what fits; the front one waits for room and nobody overtakes it.
void Router::serve_queues(GroupId group, const ImmediatePolicy& policy, bool explain) {
  const GroupView& view = ledger_.view(group);
  if (shadow_) ask_shadow(view);
  for (std::size_t worker = 0; worker < view.size(); ++worker) {
    const std::uint32_t id = view.workers[worker].value();
    while (!queues_[id].empty()) {
      const Candidate next = queues_[id].candidates().front();
      if (!view.has_room(worker, next.request.sequences, next.kv)) break;
      // Scored as if it were not yet here: its own load is no reason against it.
      const Queued with_it = queued_[id];
      count_queued(view.workers[worker], next, -1);
      Choice choice{.candidate = 0,
                    .worker = worker,
                    .stage = Stage::bound,
                    .score = policy.score(fleet_view(), group, worker, next),
                    .margin = view.envelope() - view.loads[worker]};
      if (explain) choice.runner_up = next_best(policy, view, worker, next);
      if (!admit(group, next, choice)) {
        queued_[id] = with_it;
        break;
      }
      queues_[id].erase(0);
    }
  }
}

bool Router::admit(GroupId group, const Candidate& candidate, const Choice& choice) {
  const GroupView& view = ledger_.view(group);
  const WorkerId worker = view.workers[choice.worker];
  auto lease = ledger_.reserve(worker, candidate.request);
  if (!lease) {
    ++refused_choices_;
    return false;
  }
  waiting_.erase(candidate.request.id);
  eligibility_.served(candidate);
  patience_.admitted(now_);
  Admission admission{.request = candidate.request,
                      .worker = worker,
                      .incarnation = ledger_.incarnation(worker),
                      .lease = *std::move(lease),
                      .stage = choice.stage,
                      .set_size = choice.set_size,
                      .score = choice.score,
                      .margin = choice.margin};
  if (choice.runner_up) admission.runner_up = {view.workers[choice.runner_up->worker], choice.runner_up->score};
  admissions_.push_back(std::move(admission));
  return true;
}

// --- explanations ---

std::optional<RunnerUp> Router::next_best(const ImmediatePolicy& policy, const GroupView& group, std::size_t worker,
                                          const Candidate& candidate) const {
  std::optional<RunnerUp> best;
  for (std::size_t other = 0; other < group.size(); ++other) {
    if (other == worker || group.eligible[other] == 0) continue;
    const double score = policy.score(fleet_view(), group.group, other, candidate);
    if (!best || score > best->score) best = RunnerUp{other, score};
  }
  return best;
}

std::vector<WorkerScore> Router::explain(GroupId group, const Request& request) const {
  const GroupView& view = ledger_.view(group);
  const Candidate candidate = candidate_of(request);
  std::vector<WorkerScore> scores;
  scores.reserve(view.size());
  for (std::size_t i = 0; i < view.size(); ++i) {
    scores.push_back({.worker = view.workers[i],
                      .eligible = view.eligible[i] != 0,
                      .free_slots = view.free_slots[i],
                      .kv_free = view.kv_free[i],
                      .load = view.loads[i],
                      .margin = view.envelope() - view.loads[i],
                      .score = policy_->score(fleet_view(), group, i, candidate)});
  }
  return scores;
}

}  // namespace balanceroute
