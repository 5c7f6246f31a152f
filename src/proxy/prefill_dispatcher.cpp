#include "proxy/prefill_dispatcher.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace balanceroute::proxy {

namespace {

constexpr double kPrefillTimeGain = 0.1;
// Candidates for each worker that the pool holds, so that a policy has a choice.
constexpr std::size_t kCandidatesEach = 16;

}  // namespace

// The part of a claim that both threads may hold.
struct PrefillClaim::State {
  State(net::IoThread& thread, RequestId request) : home{thread}, id{request}, answered{thread} {}

  net::IoThread& home;
  RequestId id;
  net::Event answered;
  std::optional<std::expected<PrefillId, PlacementError>> result;
};

PrefillClaim::PrefillClaim(PrefillDispatcher& dispatcher, std::shared_ptr<State> state)
    : dispatcher_{&dispatcher}, state_{std::move(state)} {}

PrefillClaim::PrefillClaim(PrefillClaim&& other) noexcept = default;

PrefillClaim& PrefillClaim::operator=(PrefillClaim&& other) noexcept {
  if (this == &other) return *this;
  leave();
  dispatcher_ = other.dispatcher_;
  state_ = std::move(other.state_);
  return *this;
}

net::asio::awaitable<std::expected<PrefillId, PlacementError>> PrefillClaim::assigned(net::TimePoint deadline) {
  const net::WaitResult waited = co_await state_->answered.wait(deadline);
  if (waited == net::WaitResult::Timeout) co_return std::unexpected(PlacementError::Timeout);
  if (waited == net::WaitResult::Cancelled) co_return std::unexpected(PlacementError::Cancelled);
  co_return *state_->result;
}

void PrefillClaim::computed(Tokens prompt) {
  if (!state_) return;
  dispatcher_->decider_.dispatch(
      [dispatcher = dispatcher_, id = state_->id, prompt] { dispatcher->computed(id, prompt); });
}

void PrefillClaim::fetched() {
  if (!state_) return;
  dispatcher_->decider_.dispatch([dispatcher = dispatcher_, id = state_->id] { dispatcher->fetched(id); });
}

void PrefillClaim::failed() {
  if (!state_) return;
  dispatcher_->decider_.dispatch([dispatcher = dispatcher_, id = state_->id] { dispatcher->failed(id); });
  leave();
}

void PrefillClaim::leave() {
  const auto state = std::exchange(state_, nullptr);
  if (!state) return;
  dispatcher_->decider_.dispatch([dispatcher = dispatcher_, id = state->id] { dispatcher->leave(id); });
}

PrefillDispatcher::PrefillDispatcher(Dispatcher& dispatcher, const PrefillOptions& options)
    : dispatcher_{dispatcher},
      decider_{dispatcher.decider()},
      options_{options},
      book_{options.book},
      change_timer_{decider_.timers()} {
  dispatcher_.on_pool_change([this] { dispatch(); });
}

PrefillDispatcher::~PrefillDispatcher() = default;

PrefillClaim PrefillDispatcher::request(net::IoThread& home, PrefillWork work, Turn turn,
                                        std::optional<PrefillId> avoid) {
  const RequestId id{next_request_.fetch_add(1, std::memory_order_relaxed)};
  auto state = std::make_shared<State>(home, id);
  live_.fetch_add(1, std::memory_order_relaxed);
  decider_.dispatch([this, id, state, work = std::move(work), turn, avoid] {
    submit(id,
           {.state = state,
            .request = {.id = id, .prompt = work.tokens, .sequences = work.sequences},
            .turn = turn,
            .avoid = avoid,
            .lease = {}},
           work.tenant);
  });
  return PrefillClaim{*this, std::move(state)};
}

void PrefillDispatcher::set_tenants(const std::vector<TenantParams>& tenants) {
  tenants_.follow(tenants, eligibility_);
  dispatch();
}

void PrefillDispatcher::set_reachable(PrefillId id, bool reachable) {
  book_.set_reachable(id, reachable);
  dispatch();
}

std::size_t PrefillDispatcher::parked(std::string_view tenant) const {
  const auto known = tenants_.known().find(tenant);
  return eligibility_.standing(known == tenants_.known().end() ? kDefaultTenant : known->second.id).parked;
}

namespace {

template <class State>
void answer(const std::shared_ptr<State>& state, std::expected<PrefillId, PlacementError> result) {
  state->home.dispatch([state, result] {
    state->result = result;
    state->answered.set();
  });
}

}  // namespace

void PrefillDispatcher::submit(RequestId id, Entry entry, const std::string& tenant) {
  tenants_.mark(entry.request, tenant);
  if (entry.turn == Turn::Next) {
    eligibility_.joined(entry.request);
    entry.counts = true;
    next_.push_back(id);
  } else if (waiting_ >= options_.waiting_limit) {
    answer(entry.state, std::unexpected(PlacementError::QueueFull));
    return;
  } else if (eligibility_.obstacle(entry.request)) {
    answer(entry.state, std::unexpected(PlacementError::ExceedsQuota));
    return;
  } else if (eligibility_.enters(entry.request)) {
    enter(entry.request);
  }
  ++waiting_;
  entries_.emplace(id, std::move(entry));
  dispatch();
}

// It has room in its tenant's quota: its turn comes.
void PrefillDispatcher::enter(const Request& request) {
  Candidate candidate{.request = request, .weight = request.prompt, .serial = next_serial_++};
  eligibility_.give_turn(candidate);
  in_order_.insert(candidate);
}

void PrefillDispatcher::computed(RequestId id, Tokens prompt) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.lease.live() || found->second.lease.holds_kv()) return;
  Entry& entry = found->second;
  const std::chrono::duration<double> took = decider_.now() - entry.since;
  prefill_seconds_ += prefill_seconds_ == 0 ? took.count() : kPrefillTimeGain * (took.count() - prefill_seconds_);
  end_in_flight(entry);
  book_.set_now(decider_.now());
  book_.answered(entry.lease.instance());
  entry.lease.computed(prompt);
  dispatch();
}

void PrefillDispatcher::fetched(RequestId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  end_in_flight(found->second);
  found->second.lease.fetched();
  dispatch();
}

void PrefillDispatcher::failed(RequestId id) {
  const auto found = entries_.find(id);
  if (found == entries_.end() || !found->second.lease.live()) return;
  book_.set_now(decider_.now());
  book_.failed(found->second.lease.instance());
}

void PrefillDispatcher::leave(RequestId id) {
  live_.fetch_sub(1, std::memory_order_relaxed);
  const auto found = entries_.find(id);
  if (found == entries_.end()) return;
  if (found->second.state) stop_waiting(id, found->second);
  if (found->second.counts) eligibility_.left(found->second.request);
  end_in_flight(found->second);
  book_.set_now(decider_.now());
  entries_.erase(found);
  dispatch();
}

void PrefillDispatcher::end_in_flight(Entry& entry) {
  if (entry.lease.live() && !entry.lease.holds_kv()) --in_flight_;
}

// Takes back what waits; its tenant has nothing of it any more.
void PrefillDispatcher::stop_waiting(RequestId id, Entry& entry) {
  --waiting_;
  if (entry.turn == Turn::Next) return;  // it counts until it leaves
  if (const auto position = in_order_.find(id)) {
    eligibility_.withdrawn(in_order_.candidates()[*position]);
    in_order_.erase(*position);
  } else {
    eligibility_.withdraw_parked(id);
  }
}

// Gives instances to as many as may have one now.
void PrefillDispatcher::dispatch() {
  book_.set_now(decider_.now());
  if (waiting_ > 0 && !book_.any_ready()) refuse_all();
  while (const auto released = eligibility_.release_parked()) enter(*released);
  while (give_next()) {
  }
  while (dispatcher_.pool_state().waiting + in_flight_ < pool_target() && give_in_order()) {
  }
  watch();
}

// False when nobody waits to be next or no instance has room for the first of them.
bool PrefillDispatcher::give_next() {
  const auto waits = [this](RequestId id) {
    const auto found = entries_.find(id);
    return found != entries_.end() && found->second.state;
  };
  while (!next_.empty() && !waits(next_.front())) next_.pop_front();
  if (next_.empty() || !give(entries_.at(next_.front()))) return false;
  next_.pop_front();
  return true;
}

// The same of those whose turns come in order.
bool PrefillDispatcher::give_in_order() {
  if (in_order_.empty()) return false;
  const Candidate candidate = in_order_.candidates().front();
  Entry& entry = entries_.at(candidate.request.id);
  if (!give(entry)) return false;
  entry.counts = true;
  eligibility_.served(candidate);
  in_order_.erase(0);
  return true;
}

bool PrefillDispatcher::give(Entry& entry) {
  auto lease = book_.take(entry.request.prompt, entry.avoid);
  if (!lease) return false;
  entry.lease = std::move(*lease);
  entry.since = decider_.now();
  --waiting_;
  ++in_flight_;
  answer(std::exchange(entry.state, nullptr), entry.lease.instance());
  return true;
}

void PrefillDispatcher::refuse_all() {
  for (auto& [id, entry] : entries_) {
    if (!entry.state) continue;
    stop_waiting(id, entry);
    answer(std::exchange(entry.state, nullptr), std::unexpected(PlacementError::NoPrefillReady));
  }
  next_.clear();
}

std::size_t PrefillDispatcher::pool_target() const {
  const Dispatcher::PoolState pool = dispatcher_.pool_state();
  const double rate = pool.releases_per_second.value_or(0);
  const std::size_t useful = std::max({kCandidatesEach * pool.workers_ready, 2 * options_.candidates,
                                       static_cast<std::size_t>(std::ceil(rate * prefill_seconds_))});
  const std::chrono::duration<double> half_limit = options_.hold_limit / 2;
  // Before the first departure nothing is known of their rate: one for each worker is prepared for it.
  const std::size_t departures =
      pool.releases_per_second ? static_cast<std::size_t>(std::ceil(rate * half_limit.count())) : pool.workers_ready;
  return std::min(useful, pool.free_slots + departures);
}

// Comes back when the passing of time alone frees something.
void PrefillDispatcher::watch() {
  change_timer_.arm(book_.next_change(), [this] { dispatch(); });
}

PrefillSnapshot PrefillDispatcher::snapshot(bool with_leases) const {
  PrefillSnapshot out{.instances = book_.instances(),
                      .leases = {},
                      .live = live(),
                      .waiting = waiting_,
                      .in_flight = in_flight_,
                      .pool_target = pool_target(),
                      .prefill_seconds = prefill_seconds_};
  if (!with_leases) return out;
  for (const auto& [id, entry] : entries_) {
    const PrefillLease& lease = entry.lease;
    if (!lease.live()) continue;
    out.leases.push_back(
        {.request = id, .instance = lease.instance(), .holds_kv = lease.holds_kv(), .tokens = lease.tokens()});
  }
  std::ranges::sort(out.leases, {}, &PrefillLeaseRecord::request);
  return out;
}

}  // namespace balanceroute::proxy
