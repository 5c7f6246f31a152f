#include "proxy/dispatcher.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <span>
#include <utility>

#include "core/envelope.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/stream_progress.hpp"

namespace balanceroute::proxy {

namespace {

// How fast the measured step time follows.
constexpr double kStepTimeGain = 0.1;
// The share of a step that a round waits for the rest of a burst.
constexpr double kBurstShare = 0.1;
// Between two looks at all streams.
constexpr std::chrono::seconds kLookEvery{1};
// After so long without a step whatever an engine has sent has been read.
constexpr int kHalfStepsOfSilence = 8;
// Before a group has shown its pace.
constexpr std::chrono::milliseconds kHalfOfUnknownStep{5};

PlacementError placement_error(SubmitError error) {
  switch (error) {
    case SubmitError::NoWorkerReady:
      return PlacementError::NoWorkerReady;
    case SubmitError::TooManySequences:
      return PlacementError::TooManySequences;
    case SubmitError::TooManyTokens:
    case SubmitError::ExceedsKvSpace:
      return PlacementError::TooManyTokens;
    case SubmitError::ExceedsQuota:
      return PlacementError::ExceedsQuota;
    case SubmitError::NoSequence:
    case SubmitError::NegativeTokens:
    case SubmitError::UnknownTenant:
    case SubmitError::AlreadyKnown:
      return PlacementError::Internal;
  }
  return PlacementError::Internal;
}

std::optional<PredictorStanding> standing_of(const Policy& policy) {
  const auto report = policy.prediction_report();
  if (!report) return std::nullopt;
  return PredictorStanding{.name = std::string{report->predictor},
                           .horizon_steps = report->horizon.count(),
                           .predictions = report->calibration.count(),
                           .mean_predicted = report->calibration.mean_predicted(),
                           .mean_happened = report->calibration.mean_happened(),
                           .brier_score = report->calibration.brier_score(),
                           .brier_reference = report->calibration.brier_reference(),
                           .key_hits = report->key_hits};
}

}  // namespace

std::string_view to_string(PlacementError error) {
  switch (error) {
    case PlacementError::QueueFull:
      return "queue_full";
    case PlacementError::NoWorkerReady:
      return "no_worker_ready";
    case PlacementError::NoPrefillReady:
      return "no_prefill_ready";
    case PlacementError::TooManySequences:
      return "too_many_sequences";
    case PlacementError::TooManyTokens:
      return "too_many_tokens";
    case PlacementError::ExceedsQuota:
      return "exceeds_quota";
    case PlacementError::Timeout:
      return "admission_timeout";
    case PlacementError::HoldExpired:
      return "hold_expired";
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
  std::optional<Steps> begin;  // the step of its group that its tokens count from
  bool settled = false;        // the beginning was looked at
  StreamProgress progress;
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
  (*state_->result)->pulse->beat();
  StepClock& clock = dispatcher_->step_clock_;
  const net::TimePoint now = state_->home.now();
  state_->progress.show(Tokens{tokens}, now);
  if (!state_->begin) {
    // Its first tokens are taken for a part of the latest step that was shown: to take them for a new one would put the
    // clock ahead of the engine by a step with many an admission. Where other streams show that step only afterwards,
    // the request is a step's growth ahead in the books, until it is looked at.
    state_->begin = clock.latest(group).step - Steps{tokens};
    dispatcher_->decider_.dispatch(
        [dispatcher = dispatcher_, id = state_->id, begin = *state_->begin] { dispatcher->runs_since(id, begin); });
  }
  if (!state_->settled) state_->begin = std::min(*state_->begin, clock.limit(group, now) - Steps{tokens});
  clock.report(state_->home_index, group, *state_->begin + Steps{tokens}, now);
}

void Placement::finish_one(std::int64_t tokens) {
  if (state_->left) return;
  dispatcher_->decider_.dispatch(
      [dispatcher = dispatcher_, id = state_->id, tokens] { dispatcher->finish_one(id, Tokens{tokens}); });
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
                       DispatcherOptions options, const std::vector<std::string>& groups)
    : decider_{decider},
      options_{std::move(options)},
      router_{options_.fleet, std::move(policy), options_.seed, options_.router},
      step_clock_{io_threads, groups.size()},
      paces_(groups.size()),
      meters_(groups.size()),
      round_timer_{decider.timers()},
      hold_timer_{decider.timers()},
      look_timer_{decider.timers()} {
  for (const std::string& group : groups) router_.add_group(group, options_.barrier);
}

Dispatcher::~Dispatcher() = default;

Placement Dispatcher::request(net::IoThread& home, std::size_t home_index, RequestSize size, std::string tenant) {
  const RequestId id{next_request_.fetch_add(1, std::memory_order_relaxed)};
  auto state = std::make_shared<State>(home, home_index, id);
  live_.fetch_add(1, std::memory_order_relaxed);
  Request request{.id = id,
                  .prompt = size.prompt,
                  .sequences = size.sequences,
                  .output_limit = size.output_limit,
                  .prompt_key = size.prompt_key};
  decider_.dispatch([this, request, size = std::move(size), state, tenant = std::move(tenant)]() mutable {
    tenants_.mark(request, tenant);
    submit(request, size, std::move(state));
  });
  return Placement{*this, std::move(state)};
}

void Dispatcher::set_tenants(const std::vector<TenantParams>& tenants) {
  change([&](Router& router) {
    tenants_.follow(tenants, router);
    return true;
  });
}

void Dispatcher::submit(Request request, const RequestSize& size, std::shared_ptr<State> state) {
  if (router_.waiting() >= options_.waiting_limit) {
    answer(state, std::unexpected(PlacementError::QueueFull));
    return;
  }
  router_.set_now(decider_.now().time_since_epoch());
  if (!size.avoid.empty() && place_elsewhere(request, size, state)) return;
  auto submitted = router_.submit(request);
  const bool too_large = !submitted && (submitted.error() == SubmitError::ExceedsKvSpace ||
                                        submitted.error() == SubmitError::TooManyTokens);
  if (too_large && !size.counted) {
    // An estimate is no reason to refuse: the engine counts, and knows.
    request.prompt = router_.ledger().largest_prompt(request.sequences);
    submitted = router_.submit(request);
  }
  if (!submitted) {
    answer(state, std::unexpected(placement_error(submitted.error())));
    return;
  }
  enter(request, size, std::move(state));
  if (size.hold_until) {
    holds_.emplace_back(*size.hold_until, request.id);
    if (!hold_timer_.armed()) hold_timer_.arm(*size.hold_until, [this] { reap(); });
  }
  schedule_round();
}

Dispatcher::Entry& Dispatcher::enter(const Request& request, const RequestSize& size, std::shared_ptr<State> state) {
  Entry& entry = entries_[request.id];
  entry.request = request;
  entry.streams = state;
  entry.state = std::move(state);
  entry.arrived = decider_.now();
  entry.reports = size.reports;
  // Of an answer in one piece nobody sees when its transfer is over.
  entry.transfers = size.hold_until && size.reports;
  return entry;
}

// A request that has been placed before has had its turn; false if no other worker has room, and it waits again.
bool Dispatcher::place_elsewhere(const Request& request, const RequestSize& size, const std::shared_ptr<State>& state) {
  follow_steps();
  const auto worker = least_loaded_but(request, size.avoid);
  if (!worker) return false;
  const GroupView& group = router_.ledger().view(router_.ledger().group_of(*worker));
  const Tokens margin = group.envelope() - group.loads[*router_.ledger().position(*worker)];
  auto lease = router_.adopt(*worker, request);
  if (!lease) return false;
  Entry& entry = enter(request, size, state);
  entry.lease = std::move(*lease);
  has_slots(entry, *worker);
  hand_out(entry, {.worker = *worker, .group = group.group, .stage = Stage::retried, .score = 0, .margin = margin});
  return true;
}

// Of another group first, where workers wait for one another: those beside one that fails may hang with it.
std::optional<WorkerId> Dispatcher::least_loaded_but(const Request& request, const std::vector<WorkerId>& avoid) const {
  const Ledger& ledger = router_.ledger();
  const Tokens kv = ledger.kv_on_entry(request);
  std::optional<WorkerId> best;
  std::pair<bool, Tokens> least;
  for (const GroupView& group : ledger.groups()) {
    const bool beside = options_.barrier && std::ranges::any_of(avoid, [&](WorkerId failed) {
                          return ledger.group_of(failed) == group.group;
                        });
    for (std::size_t w = 0; w < group.size(); ++w) {
      const std::pair order{beside, group.loads[w]};
      if (group.eligible[w] == 0 || !group.has_room(w, request.sequences, kv)) continue;
      if (std::ranges::find(avoid, group.workers[w]) != avoid.end() || (best && order >= least)) continue;
      best = group.workers[w];
      least = order;
    }
  }
  return best;
}

// Workers may have joined.
void Dispatcher::fit_tables() {
  const std::size_t workers = router_.ledger().worker_count();
  ahead_.resize(workers);
  transfers_.resize(workers);
  held_back_.resize(workers);
  activity_.resize(workers);
  while (pulses_.size() < workers) pulses_.emplace_back();
}

// --- KV that may be held no longer ---

void Dispatcher::reap() {
  fit_tables();
  router_.set_now(decider_.now().time_since_epoch());
  while (!holds_.empty() && holds_.front().first <= decider_.now()) {
    const RequestId id = holds_.front().second;
    holds_.pop_front();
    const auto found = entries_.find(id);
    if (found == entries_.end() || !router_.withdraw(id)) continue;
    Entry& entry = found->second;
    const auto worker = entry.request.sequences == 1 ? worker_beyond_slots() : std::nullopt;
    if (!worker) {
      ++holds_expired_;
      answer(std::exchange(entry.state, nullptr), std::unexpected(PlacementError::HoldExpired));
      continue;
    }
    ++forced_holds_;
    entry.ahead = *worker;
    ahead_[worker->value()].push_back(id);
    hand_out(entry, {.worker = *worker,
                     .group = router_.ledger().group_of(*worker),
                     .stage = Stage::late,
                     .score = 0,
                     .margin = Tokens{0}});
  }
  if (!holds_.empty()) hold_timer_.arm(holds_.front().first, [this] { reap(); });
  pool_changed_();
}

// The least loaded one that has not been sent too many already.
std::optional<WorkerId> Dispatcher::worker_beyond_slots() const {
  std::optional<WorkerId> best;
  Tokens least{0};
  for (const GroupView& group : router_.ledger().groups()) {
    for (std::size_t w = 0; w < group.size(); ++w) {
      const WorkerId worker = group.workers[w];
      const bool full =
          worker.value() < ahead_.size() && std::cmp_greater_equal(ahead_[worker.value()].size(), options_.overcommit);
      if (group.eligible[w] == 0 || full || options_.overcommit == 0) continue;
      if (best && group.loads[w] >= least) continue;
      best = worker;
      least = group.loads[w];
    }
  }
  return best;
}

// Those ahead take the next free slots of their workers, before a policy gives them away.
void Dispatcher::seat_those_ahead() {
  for (std::uint32_t w = 0; w < ahead_.size(); ++w) {
    while (!ahead_[w].empty()) {
      Entry& entry = entries_.at(ahead_[w].front());
      auto lease = router_.adopt(WorkerId{w}, entry.request);
      if (!lease) break;
      entry.lease = std::move(*lease);
      has_slots(entry, WorkerId{w});
      age(entry);
      entry.ahead.reset();
      ahead_[w].pop_front();
    }
  }
}

void Dispatcher::leave_line(const Entry& entry) {
  if (entry.ahead) std::erase(ahead_[entry.ahead->value()], entry.request.id);
}

// --- transfers ---

// Tells the request its worker, now or when the worker has fetched enough KV of others.
void Dispatcher::hand_out(Entry& entry, Placed placed) {
  const std::size_t worker = placed.worker.value();
  if (entry.transfers) {
    if (transfers_[worker] >= options_.transfers_limit) {
      entry.placed = placed;
      held_back_[worker].push_back(entry.request.id);
      return;
    }
    ++transfers_[worker];
    entry.carrying = placed.worker;
  }
  entry.sent = decider_.now();
  entry.worker = placed.worker;
  placed.pulse = &pulses_[worker];
  placed.policy = router_.policy().name();
  if (!entry.reports) {
    const std::chrono::duration<double> usual{first_token_seconds_};
    unreported_.emplace_back(entry.sent + std::chrono::duration_cast<net::Duration>(usual), entry.request.id);
  }
  answer(std::exchange(entry.state, nullptr), placed);
}

void Dispatcher::end_transfer(Entry& entry) {
  if (!entry.carrying) return;
  const std::size_t worker = std::exchange(entry.carrying, std::nullopt)->value();
  --transfers_[worker];
  std::deque<RequestId>& waiting = held_back_[worker];
  while (!waiting.empty() && transfers_[worker] < options_.transfers_limit) {
    const auto next = entries_.find(waiting.front());
    waiting.pop_front();
    if (next != entries_.end()) hand_out(next->second, *next->second.placed);
  }
}

// Answers in one piece show no tokens: they are taken to run when a streamed one would.
void Dispatcher::presume_running() {
  while (!unreported_.empty() && unreported_.front().first <= decider_.now()) {
    const auto entry = entries_.find(unreported_.front().second);
    unreported_.pop_front();
    if (entry == entries_.end()) continue;
    entry->second.lease.started();
    has_started(entry->second);
  }
}

// --- what engines may have seen ---

void Dispatcher::has_slots(Entry& entry, WorkerId worker) {
  entry.worker = worker;
  entry.has_slots = true;
  activity_[worker.value()].admitted += entry.request.sequences;
  if (!entry.started) activity_[worker.value()].not_started += entry.request.sequences;
  if (observer_ != nullptr) observer_->began(worker);
}

void Dispatcher::has_started(Entry& entry) {
  if (std::exchange(entry.started, true) || !entry.has_slots) return;
  activity_[entry.worker.value()].not_started -= entry.request.sequences;
}

WorkerActivity Dispatcher::activity(WorkerId worker) const {
  WorkerActivity all = activity_[worker.value()];
  all.ahead = static_cast<std::int64_t>(ahead_[worker.value()].size());
  return all;
}

void Dispatcher::runs_since(RequestId request, Steps begin) {
  const auto found = entries_.find(request);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  follow_steps();
  entry.begin = begin;
  age(entry);
  newcomers_.push_back(request);
  look_soon();
  if (entry.started) return;
  const std::chrono::duration<double> took = decider_.now() - entry.sent;
  first_token_seconds_ +=
      first_token_seconds_ == 0 ? took.count() : kStepTimeGain * (took.count() - first_token_seconds_);
  end_transfer(entry);
  has_started(entry);
}

// Sets a running request's tokens right in the books.
void Dispatcher::age(Entry& entry) {
  if (!entry.begin) return;
  const Steps now = pace_of(entry).steps;
  entry.lease.progress(Tokens{std::max<std::int64_t>((now - *entry.begin).count(), 1)});
}

Dispatcher::GroupPace& Dispatcher::pace_of(const Entry& entry) {
  return paces_[router_.ledger().group_of(entry.worker).value()];
}

// --- books against streams ---

// Looks at those that are new in half a step.
void Dispatcher::look_soon() {
  net::Duration wait = net::Duration::max();
  for (const GroupPace& pace : paces_) wait = std::min(wait, pace.half_step());
  const net::TimePoint soon = decider_.now() + wait;
  if (look_timer_.armed() && look_timer_.deadline() <= soon) return;
  look_timer_.arm(soon, [this] { look_at_streams(); });
}

net::Duration Dispatcher::GroupPace::half_step() const {
  if (step_seconds == 0) return kHalfOfUnknownStep;
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double>{step_seconds / 2});
}

// Newcomers are looked at in the middle of their first step, all requests every kLookEvery.
void Dispatcher::look_at_streams() {
  follow_steps();
  const net::TimePoint now = decider_.now();
  if (now >= next_look_) {
    next_look_ = now + kLookEvery;
    newcomers_.clear();
    for (auto& [id, entry] : entries_) {
      if (entry.begin && !settle(entry)) newcomers_.push_back(id);
    }
  } else {
    std::erase_if(newcomers_, [this](RequestId id) {
      const auto entry = entries_.find(id);
      return entry == entries_.end() || settle(entry->second);
    });
  }
  if (!newcomers_.empty()) {
    look_soon();
  } else if (router_.ledger().live_leases() > 0) {
    look_timer_.arm(next_look_, [this] { look_at_streams(); });
  }
}

// Gives the request the tokens in the books that its streams have shown, and its streams the step that they count from,
// between two steps of its group: then every stream that takes part has shown the latest. False within a step.
bool Dispatcher::settle(Entry& entry) {
  const GroupPace& pace = pace_of(entry);
  const ShownStep latest = step_clock_.latest(router_.ledger().group_of(entry.worker));
  const bool between_steps = decider_.now() - latest.since >= pace.half_step() && latest.step == pace.steps;
  if (options_.barrier && !between_steps) return false;
  const Steps begin = pace.steps - Steps{tokens_shown(entry, latest.since).count()};
  if (begin == *entry.begin && entry.settled) return true;
  entry.begin = begin;
  entry.settled = true;
  age(entry);
  entry.streams->home.dispatch([streams = entry.streams, begin] {
    streams->begin = begin;
    streams->settled = true;
  });
  return true;
}

// A stream that is read late or has an event for several steps keeps the clock's count. In silence it is none but what
// its next event may bring, and one that has not been read for long. Workers without a barrier have no step in common:
// what was shown lately is right but for a token.
Tokens Dispatcher::tokens_shown(const Entry& entry, net::TimePoint latest_step) {
  const GroupPace& pace = pace_of(entry);
  const net::Duration half = pace.half_step();
  const net::TimePoint now = decider_.now();
  const StreamProgress& progress = entry.streams->progress;
  const Tokens shown = progress.tokens();
  const Tokens counted{(pace.steps - *entry.begin).count()};
  const net::TimePoint lately = options_.barrier ? latest_step - half : now - 3 * half;
  if (progress.at() >= lately) return shown;
  const net::Duration silence = kHalfStepsOfSilence * half;
  if (now - latest_step < silence || progress.at() < latest_step - silence) return counted;
  return std::clamp(counted, shown, shown + std::max(progress.latest() - Tokens{1}, Tokens{0}));
}

void Dispatcher::finish_one(RequestId request, Tokens generated) {
  const auto entry = entries_.find(request);
  if (entry == entries_.end()) return;
  follow_steps();
  entry->second.lease.finish_one(generated);
  schedule_round();
}

void Dispatcher::leave(RequestId request, std::optional<Tokens> generated) {
  live_.fetch_sub(1, std::memory_order_relaxed);
  const auto entry = entries_.find(request);
  if (entry == entries_.end()) return;
  router_.withdraw(request);  // if it still waits
  if (entry->second.lease.live()) releases_.count(decider_.now());
  leave_line(entry->second);
  end_transfer(entry->second);
  if (generated) entry->second.lease.finish(*generated);
  const WorkerId worker = entry->second.worker;
  if (entry->second.has_slots) {
    has_started(entry->second);
    activity_[worker.value()].ended += entry->second.request.sequences;
  }
  entries_.erase(entry);
  if (router_.ledger().live_leases() == 0) {
    for (GroupPace& pace : paces_) pace.since = {};  // the coming pause is no step
  }
  if (observer_ != nullptr && worker.names_something()) observer_->ended(worker, generated.has_value());
  schedule_round();
  pool_changed_();
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
  presume_running();
  fit_tables();
  seat_those_ahead();
  ++rounds_;
  for (Admission& admission : decide()) {
    ++admissions_;
    ++admissions_by_stage_[static_cast<std::size_t>(admission.stage)];
    Entry& entry = entries_.at(admission.request.id);
    note(admission, entry);
    entry.lease = std::move(admission.lease);
    has_slots(entry, admission.worker);
    hand_out(entry, {.worker = admission.worker,
                     .group = router_.ledger().group_of(admission.worker),
                     .stage = admission.stage,
                     .score = admission.score,
                     .margin = admission.margin});
  }
  for (const GroupView& group : router_.ledger().groups())
    meters_[group.group.value()].see(group.loads, group.sequences);
  pool_changed_();
}

// A round, and how long it took.
std::span<Admission> Dispatcher::decide() {
  const auto beside = [this] { return shadow_ == nullptr ? net::Duration{0} : shadow_->guard().spent(); };
  const net::Duration before = beside();
  const net::TimePoint began = decider_.now();
  const std::span<Admission> admissions = router_.round_all(watched_);
  const net::Duration took = decider_.now() - began - (beside() - before);
  if (took > slow_round_) ++slow_rounds_;
  round_times_.add(std::chrono::duration<double>{took}.count());
  return admissions;
}

void Dispatcher::note(const Admission& admission, const Entry& entry) {
  const GroupId group = router_.ledger().group_of(admission.worker);
  trail_.add({.at = decider_.now(),
              .waited = decider_.now() - entry.arrived,
              .request = admission.request.id,
              .worker = admission.worker,
              .group = group,
              .prompt = admission.request.prompt,
              .sequences = admission.request.sequences,
              .stage = admission.stage,
              .set_size = admission.set_size,
              .score = admission.score,
              .margin = admission.margin,
              .envelope = router_.ledger().view(group).envelope(),
              .runner_up = admission.runner_up,
              .shadow = shadow_ != nullptr && watched_ ? shadow_->choice(admission.request.id) : std::nullopt});
}

// Brings the ledger to the step that the streams show.
void Dispatcher::follow_steps() {
  const net::TimePoint now = decider_.now();
  for (std::uint32_t g = 0; g < paces_.size(); ++g) {
    GroupPace& pace = paces_[g];
    const Steps steps = step_clock_.latest(GroupId{g}).step;
    const auto sequences = router_.ledger().view(GroupId{g}).sequences;
    // A stream that is alone in its group puts nobody ahead.
    const bool several = std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0}) > 1;
    step_clock_.set_half_step(GroupId{g}, several ? pace.half_step() : net::Duration::zero());
    if (steps == pace.steps) continue;
    const Steps taken = steps - pace.steps;
    const std::chrono::duration<double> passed = now - pace.since;
    const double sample = passed.count() / static_cast<double>(taken.count());
    meters_[g].stepped(taken, pace.since == net::TimePoint{} ? std::nullopt : std::optional{passed.count()});
    router_.advance(GroupId{g}, taken);
    const GroupView& view = router_.ledger().view(GroupId{g});
    meters_[g].see(view.loads, view.sequences);
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

Dispatcher::PoolState Dispatcher::pool_state() const {
  // A parked request is none to choose from.
  PoolState state{.waiting = router_.waiting() - router_.parked(),
                  .releases_per_second = releases_.per_second(decider_.now())};
  for (const GroupView& group : router_.ledger().groups()) {
    for (std::size_t w = 0; w < group.size(); ++w) {
      if (group.eligible[w] == 0) continue;
      ++state.workers_ready;
      state.free_slots += static_cast<std::size_t>(std::max(group.free_slots[w], 0));
    }
  }
  return state;
}

FleetExplanation Dispatcher::explain(const RequestSize& size) {
  follow_steps();
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

std::vector<StepTrail> Dispatcher::step_trails() const {
  std::vector<StepTrail> trails;
  for (const GroupMeter& meter : meters_) trails.push_back(meter.trail());
  return trails;
}

FleetSnapshot Dispatcher::snapshot(bool with_leases) {
  follow_steps();
  const Ledger& ledger = router_.ledger();
  FleetSnapshot out;
  out.fleet = options_.fleet;
  out.policy = router_.policy().name();
  out.waiting = router_.waiting();
  out.rounds = rounds_;
  out.slow_rounds = slow_rounds_;
  out.policy_errors = router_.refused_choices() + router_.broken_calls();
  out.admissions = admissions_;
  out.admissions_by_stage = admissions_by_stage_;
  out.round_times = round_times_;
  out.score_meaning = router_.policy().score_meaning();
  out.predictor = standing_of(router_.policy());
  out.forced_holds = forced_holds_;
  out.holds_expired = holds_expired_;
  if (with_leases) out.leases = ledger.leases();
  out.tenants.push_back({.name = std::string{kDefaultTenantName}, .standing = router_.standing(kDefaultTenant)});
  for (const auto& [name, known] : tenants_.known()) {
    out.tenants.push_back({.name = name, .standing = router_.standing(known.id)});
  }
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
                          .imbalance = imbalance(view.loads),
                          .measures = meters_[view.group.value()].measures()});
  }
  return out;
}

}  // namespace balanceroute::proxy
