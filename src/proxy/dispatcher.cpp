#include "proxy/dispatcher.hpp"

#include <algorithm>
#include <utility>

#include "core/envelope.hpp"

namespace balanceroute::proxy {

namespace {

// How fast the measured step time follows.
constexpr double kStepTimeGain = 0.1;
// The share of a step that a round waits for the rest of a burst.
constexpr double kBurstShare = 0.1;

PlacementError placement_error(SubmitError error) {
  switch (error) {
    case SubmitError::NoWorkerReady:
      return PlacementError::NoWorkerReady;
    case SubmitError::TooManySequences:
      return PlacementError::TooManySequences;
    case SubmitError::TooManyTokens:
    case SubmitError::ExceedsKvSpace:
      return PlacementError::TooManyTokens;
    case SubmitError::NoSequence:
    case SubmitError::NegativeTokens:
    case SubmitError::ExceedsQuota:
    case SubmitError::UnknownTenant:
    case SubmitError::AlreadyKnown:
      return PlacementError::Internal;
  }
  return PlacementError::Internal;
}

}  // namespace

std::string_view to_string(PlacementError error) {
  switch (error) {
    case PlacementError::QueueFull:
      return "queue_full";
    case PlacementError::NoWorkerReady:
      return "no_worker_ready";
    case PlacementError::TooManySequences:
      return "too_many_sequences";
    case PlacementError::TooManyTokens:
      return "too_many_tokens";
    case PlacementError::Timeout:
      return "admission_timeout";
    case PlacementError::Cancelled:
      return "cancelled";
    case PlacementError::Internal:
      return "internal";
  }
  return "unknown";
}

// The part of a placement that both threads may hold: the deciding thread only to post the answer home.
struct Placement::State {
  State(net::IoThread& thread, std::size_t index, RequestId request)
      : home{thread}, home_index{index}, id{request}, answered{thread} {}

  net::IoThread& home;
  std::size_t home_index;
  RequestId id;
  net::Event answered;
  std::optional<std::expected<Placed, PlacementError>> result;
  std::optional<Steps> first_step;
  bool left = false;
};

Placement::Placement(Dispatcher& dispatcher, std::shared_ptr<State> state)
    : dispatcher_{&dispatcher}, state_{std::move(state)} {}

Placement::Placement(Placement&& other) noexcept = default;

net::asio::awaitable<std::expected<Placed, PlacementError>> Placement::placed(net::TimePoint deadline) {
  const net::WaitResult waited = co_await state_->answered.wait(deadline);
  if (waited == net::WaitResult::Timeout) co_return std::unexpected(PlacementError::Timeout);
  if (waited == net::WaitResult::Cancelled) co_return std::unexpected(PlacementError::Cancelled);
  co_return *state_->result;
}

void Placement::progress(std::int64_t tokens) {
  if (tokens <= 0 || state_->left || !state_->result || !state_->result->has_value()) return;
  const GroupId group = (*state_->result)->group;
  StepClock& clock = dispatcher_->step_clock_;
  if (!state_->first_step) {
    state_->first_step = clock.now(group);
    dispatcher_->decider_.dispatch([dispatcher = dispatcher_, id = state_->id] { dispatcher->first_token(id); });
  }
  clock.report(state_->home_index, group, *state_->first_step + Steps{tokens});
}

void Placement::leave() {
  end(std::nullopt);
}

void Placement::finish(std::int64_t tokens) {
  end(Tokens{tokens});
}

void Placement::end(std::optional<Tokens> generated) {
  if (!state_ || std::exchange(state_->left, true)) return;
  dispatcher_->decider_.dispatch(
      [dispatcher = dispatcher_, id = state_->id, generated] { dispatcher->leave(id, generated); });
}

Dispatcher::Dispatcher(net::IoThread& decider, std::size_t io_threads, std::unique_ptr<Policy> policy,
                       DispatcherOptions options, const std::vector<GroupSpec>& groups)
    : decider_{decider},
      options_{std::move(options)},
      router_{options_.fleet, std::move(policy), options_.seed, options_.router},
      step_clock_{io_threads, groups.size()},
      paces_(groups.size()),
      round_timer_{decider.timers()} {
  for (const GroupSpec& spec : groups) {
    const GroupId group = router_.add_group(spec.name, options_.barrier);
    for (std::size_t rank = 0; rank < spec.worker_urls.size(); ++rank) {
      // Each address is a worker of its own, so its rank there is 0; a clash was refused with the configuration.
      [[maybe_unused]] const auto added = router_.add_worker(group, spec.worker_urls[rank], 0, spec.slots, spec.kv);
    }
  }
}

Dispatcher::~Dispatcher() = default;

Placement Dispatcher::request(net::IoThread& home, std::size_t home_index, RequestSize size) {
  const RequestId id{next_request_.fetch_add(1, std::memory_order_relaxed)};
  auto state = std::make_shared<State>(home, home_index, id);
  live_.fetch_add(1, std::memory_order_relaxed);
  const Request request{.id = id, .prompt = size.prompt, .sequences = size.sequences};
  decider_.dispatch([this, request, state] { submit(request, state); });
  return Placement{*this, std::move(state)};
}

void Dispatcher::submit(const Request& request, std::shared_ptr<State> state) {
  if (router_.waiting() >= options_.waiting_limit) {
    answer(state, std::unexpected(PlacementError::QueueFull));
    return;
  }
  router_.set_now(decider_.now().time_since_epoch());
  const auto submitted = router_.submit(request);
  if (!submitted) {
    answer(state, std::unexpected(placement_error(submitted.error())));
    return;
  }
  entries_[request.id].state = std::move(state);
  schedule_round();
}

void Dispatcher::first_token(RequestId request) {
  const auto entry = entries_.find(request);
  if (entry == entries_.end()) return;
  follow_steps();
  entry->second.lease.progress(Tokens{1});
}

void Dispatcher::leave(RequestId request, std::optional<Tokens> generated) {
  live_.fetch_sub(1, std::memory_order_relaxed);
  const auto entry = entries_.find(request);
  if (entry == entries_.end()) return;
  router_.withdraw(request);  // if it still waits
  if (generated) entry->second.lease.finish(*generated);
  entries_.erase(entry);
  if (router_.ledger().live_leases() == 0) {
    for (GroupPace& pace : paces_) pace.since = {};  // the coming pause is no step
  }
  schedule_round();
}

void Dispatcher::schedule_round() {
  if (round_timer_.armed()) return;
  const net::Duration wait = delay();
  if (wait <= net::Duration::zero()) {
    run_round();
    return;
  }
  round_timer_.arm(decider_.now() + wait, [this] { run_round(); });
}

net::Duration Dispatcher::delay() const {
  if (router_.ledger().live_leases() == 0) return net::Duration::zero();
  double step_seconds = 0;
  for (const GroupPace& pace : paces_) step_seconds = std::max(step_seconds, pace.step_seconds);
  const std::chrono::duration<double> share{step_seconds * kBurstShare};
  return std::min(options_.round_delay, std::chrono::duration_cast<net::Duration>(share));
}

void Dispatcher::run_round() {
  router_.set_now(decider_.now().time_since_epoch());
  follow_steps();
  ++rounds_;
  for (Admission& admission : router_.round_all()) {
    ++admissions_;
    Entry& entry = entries_.at(admission.request.id);
    entry.lease = std::move(admission.lease);
    answer(std::exchange(entry.state, nullptr), Placed{.worker = admission.worker,
                                                       .group = router_.ledger().group_of(admission.worker),
                                                       .stage = admission.stage,
                                                       .score = admission.score,
                                                       .margin = admission.margin});
  }
}

// Brings the ledger to the step that the streams show.
void Dispatcher::follow_steps() {
  const net::TimePoint now = decider_.now();
  for (std::uint32_t g = 0; g < paces_.size(); ++g) {
    GroupPace& pace = paces_[g];
    const Steps steps = step_clock_.now(GroupId{g});
    if (steps == pace.steps) continue;
    const Steps taken = steps - pace.steps;
    router_.advance(GroupId{g}, taken);
    const std::chrono::duration<double> passed = now - pace.since;
    const double sample = passed.count() / static_cast<double>(taken.count());
    // The time before a group's first step says nothing about its pace.
    if (pace.since != net::TimePoint{}) {
      pace.step_seconds =
          pace.step_seconds == 0 ? sample : pace.step_seconds + kStepTimeGain * (sample - pace.step_seconds);
    }
    pace.steps = steps;
    pace.since = now;
  }
}

void Dispatcher::answer(const std::shared_ptr<State>& state, std::expected<Placed, PlacementError> result) {
  state->home.dispatch([state, result] {
    state->result = result;
    state->answered.set();
  });
}

FleetExplanation Dispatcher::explain(const RequestSize& size) const {
  const Policy& policy = router_.policy();
  FleetExplanation out{.fleet = options_.fleet,
                       .policy = std::string{policy.name()},
                       .score_meaning = std::string{policy.score_meaning()},
                       .workers = {}};
  for (const GroupView& group : router_.ledger().groups()) {
    for (const WorkerScore& score :
         router_.explain(group.group, {.id = {}, .prompt = size.prompt, .sequences = size.sequences})) {
      out.workers.push_back({router_.ledger().worker(score.worker).key, score});
    }
  }
  return out;
}

FleetSnapshot Dispatcher::snapshot(bool with_leases) const {
  const Ledger& ledger = router_.ledger();
  FleetSnapshot out;
  out.fleet = options_.fleet;
  out.policy = router_.policy().name();
  out.waiting = router_.waiting();
  out.rounds = rounds_;
  out.admissions = admissions_;
  if (with_leases) out.leases = ledger.leases();
  for (std::uint32_t w = 0; w < ledger.worker_count(); ++w) {
    out.workers.push_back(ledger.worker(WorkerId{w}));
    out.queued.push_back(router_.queued_at(WorkerId{w}).size());
  }
  for (const GroupView& view : ledger.groups()) {
    const GroupPace& pace = paces_[view.group.value()];
    out.groups.push_back({.name = std::string{ledger.group_name(view.group)},
                          .steps = pace.steps,
                          .step_ms = pace.step_seconds * 1000,
                          .envelope = view.envelope(),
                          .spread = spread(view.loads),
                          .imbalance = imbalance(view.loads)});
  }
  return out;
}

}  // namespace balanceroute::proxy
