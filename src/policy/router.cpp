#include "policy/router.hpp"

#include <algorithm>
#include <cassert>
#include <limits>
#include <numeric>
#include <utility>

namespace balanceroute {
namespace {

constexpr std::uint32_t kInPool = std::numeric_limits<std::uint32_t>::max();

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

Router::Router(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, const LedgerSettings& books)
    : ledger_{std::move(fleet), books}, policy_{std::move(policy)}, random_{seed} {
  assert(policy_ != nullptr);
  ledger_.observe(*this);
}

// --- what the policy is told ---

void Router::taken(const Request& request, WorkerId worker) {
  policy_->admitted(request, ledger_.group_of(worker), worker);
}

void Router::aged(RequestId request, Tokens generated) {
  policy_->aged(request, generated);
}

void Router::ended(const Request& request, Tokens generated, LeaseEnd how) {
  policy_->left(request.id, generated, how);
}

void Router::advance(GroupId group, Steps steps) {
  ledger_.advance(group, steps);
  policy_->stepped(group, steps);
}

// Tells a policy that takes over what is there.
void Router::brief_policy() {
  for (const LeaseRecord& lease : ledger_.leases()) {
    taken({.id = lease.request, .prompt = lease.prompt, .generated = lease.generated, .sequences = lease.sequences},
          lease.worker);
    if (lease.state == LeaseState::running) aged(lease.request, lease.generated);
  }
  for (const Candidate& candidate : moving_) policy_->arrived(candidate);
}

// --- membership ---

GroupId Router::add_group(std::string name, bool barrier) {
  return ledger_.add_group(std::move(name), barrier);
}

std::expected<WorkerId, WorkerError> Router::add_worker(GroupId group, std::string url, std::int32_t rank,
                                                        std::int32_t slots, const KvSpace& kv) {
  const auto added = ledger_.add_worker(group, std::move(url), rank, slots, kv);
  if (!added) return added;
  queues_.emplace_back();
  queued_.emplace_back();
  rebind();
  return added;
}

std::expected<void, WorkerError> Router::drain(WorkerId worker) {
  const auto done = ledger_.drain(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::resume(WorkerId worker) {
  const auto done = ledger_.resume(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::restart(WorkerId worker) {
  const auto done = ledger_.restart(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::declare_dead(WorkerId worker) {
  const auto done = ledger_.declare_dead(worker);
  if (done) rebind();
  return done;
}

std::expected<void, WorkerError> Router::remove(WorkerId worker) {
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
  std::ranges::sort(moving_, {}, &Candidate::serial);
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
  if (const auto error = obstacle(request)) return std::unexpected(*error);
  Candidate candidate = candidate_of(request);
  candidate.serial = next_serial_++;
  policy_->arrived(candidate);
  place(candidate);
  return {};
}

void Router::place(const Candidate& candidate) {
  std::optional<WorkerId> worker;
  if (policy_->binding() == Binding::immediate) {
    worker = static_cast<ImmediatePolicy&>(*policy_).bind(fleet_view(), candidate, random_);
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
  Pool& place = *where == kInPool ? pool_ : queues_[*where];
  const std::size_t position = *place.find(request);
  if (*where != kInPool) {
    const Candidate& leaving = place.candidates()[position];
    count_queued(WorkerId{*where}, leaving, -1);
  }
  place.erase(position);
  waiting_.erase(request);
  policy_->withdrawn(request);
  return true;
}

std::expected<Lease, AdmitError> Router::adopt(WorkerId worker, const Request& request) {
  if (waiting_.find(request.id)) return std::unexpected(AdmitError::AlreadyAdmitted);
  auto lease = ledger_.reserve(worker, request);
  if (lease) lease->started();
  return lease;
}

void Router::set_policy(std::unique_ptr<Policy> policy) {
  assert(policy != nullptr);
  policy_ = std::move(policy);
  const auto in_pool = pool_.candidates();
  moving_.assign(in_pool.begin(), in_pool.end());
  pool_.clear();
  for (std::uint32_t i = 0; i < queues_.size(); ++i) take_queue(WorkerId{i});
  std::ranges::sort(moving_, {}, &Candidate::serial);
  brief_policy();
  for (const Candidate& candidate : moving_) place(candidate);
}

// --- rounds ---

std::span<Admission> Router::round(GroupId group, bool explain) {
  admissions_.clear();
  serve(group, explain);
  return admissions_;
}

std::span<Admission> Router::round_all(bool explain) {
  visits_.clear();
  for (const GroupView& group : ledger_.groups()) {
    if (group.size() > 0) visits_.push_back(group.group);
  }
  std::ranges::sort(visits_, {}, [this](GroupId id) {
    const GroupView& group = ledger_.view(id);
    return std::pair{static_cast<double>(total_load(group.loads).count()) / static_cast<double>(total(group.slots)),
                     id};
  });
  admissions_.clear();
  for (const GroupId group : visits_) serve(group, explain);
  return admissions_;
}

void Router::serve(GroupId group, bool explain) {
  if (policy_->binding() == Binding::pooled) {
    decide_from_pool(group, static_cast<PooledPolicy&>(*policy_), explain);
  } else {
    serve_queues(group, static_cast<const ImmediatePolicy&>(*policy_), explain);
  }
}

void Router::decide_from_pool(GroupId group, PooledPolicy& policy, bool explain) {
  if (pool_.empty()) return;
  choices_.clear();
  policy.decide(
      {.group = ledger_.view(group), .pool = pool_.candidates(), .explain = explain, .groups = ledger_.groups()},
      random_, choices_);
  taken_.clear();
  for (const Choice& choice : choices_) {
    if (admit(group, pool_.candidates()[choice.candidate], choice)) taken_.push_back(choice.candidate);
  }
  std::ranges::sort(taken_);
  pool_.take(taken_);
}

// Each worker takes from the front of its own queue what fits; the front one waits for room and nobody overtakes it.
void Router::serve_queues(GroupId group, const ImmediatePolicy& policy, bool explain) {
  const GroupView& view = ledger_.view(group);
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
