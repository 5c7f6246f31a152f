#include "core/ledger.hpp"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <utility>

namespace balanceroute {
namespace {

AdmitError as_admit_error(RequestError error) {
  switch (error) {
    case RequestError::NoSequence:
      return AdmitError::NoSequence;
    case RequestError::NegativeTokens:
      return AdmitError::NegativeTokens;
    case RequestError::TooManyTokens:
      return AdmitError::TooManyTokens;
  }
  std::unreachable();
}

template <class T>
void insert_at(std::vector<T>& row, std::size_t position, T value) {
  row.insert(row.begin() + static_cast<std::ptrdiff_t>(position), value);
}

template <class T>
void erase_at(std::vector<T>& row, std::size_t position) {
  row.erase(row.begin() + static_cast<std::ptrdiff_t>(position));
}

}  // namespace

std::string_view to_string(WorkerState state) {
  switch (state) {
    case WorkerState::absent:
      return "absent";
    case WorkerState::ready:
      return "ready";
    case WorkerState::draining:
      return "draining";
    case WorkerState::dead:
      return "dead";
    case WorkerState::removed:
      return "removed";
  }
  std::unreachable();
}

std::string_view to_string(LeaseState state) {
  switch (state) {
    case LeaseState::dispatched:
      return "dispatched";
    case LeaseState::running:
      return "running";
  }
  std::unreachable();
}

bool Lease::live() const {
  return ledger_ != nullptr && ledger_->is_live(*this);
}

void Lease::release() {
  if (live()) ledger_->give_back(entry_, LeaseEnd::cut);
  ledger_ = nullptr;
}

void Lease::finish(Tokens generated) {
  if (live()) {
    ledger_->settle(entry_, generated);
    ledger_->give_back(entry_, LeaseEnd::finished);
  }
  ledger_ = nullptr;
}

void Lease::finish_one(Tokens generated) {
  if (!live()) return;
  if (ledger_->entries_[entry_].request.sequences == 1) return finish(generated);
  ledger_->narrow(entry_, generated);
}

void Lease::started() {
  if (live()) ledger_->start(entry_);
}

void Lease::progress(Tokens generated) {
  if (live()) ledger_->correct(entry_, generated);
}

Ledger::Ledger(std::string fleet, const LedgerSettings& settings)
    : fleet_{std::move(fleet)}, load_{settings.load_model}, kv_{LoadModel::paged(settings.kv_block)} {}

GroupId Ledger::add_group(std::string name, bool barrier) {
  const GroupId id{static_cast<std::uint32_t>(groups_.size())};
  groups_.emplace_back();
  groups_.back().name = std::move(name);
  groups_.back().barrier = barrier;
  views_.emplace_back();
  refresh(id);
  return id;
}

std::expected<WorkerId, WorkerError> Ledger::add_worker(GroupId group, std::string url, std::int32_t rank,
                                                        WorkerSlots slots, const KvSpace& kv, WorkerState state) {
  assert(state == WorkerState::ready || state == WorkerState::absent);
  if (group.value() >= groups_.size()) return std::unexpected(WorkerError::UnknownGroup);
  if (slots.decoding < 1 || slots.ahead < 0) return std::unexpected(WorkerError::NoSlots);
  if (kv.reserve < Tokens{0} || kv.capacity <= kv.reserve) return std::unexpected(WorkerError::NoKvSpace);
  const bool known = std::ranges::any_of(workers_, [&](const Worker& other) {
    return other.state != WorkerState::removed && other.group == group && other.url == url && other.rank == rank;
  });
  if (known) return std::unexpected(WorkerError::DuplicateWorker);
  const WorkerId id{static_cast<std::uint32_t>(workers_.size())};
  workers_.push_back({.group = group, .url = std::move(url), .rank = rank, .slots = slots, .kv = kv, .state = state});
  if (state == WorkerState::ready) attach(id);
  return id;
}

Tokens Ledger::largest_prompt(std::int32_t sequences) const {
  Tokens space{0};
  for (const Group& group : groups_) {
    for (std::size_t i = 0; i < group.workers.size(); ++i) {
      if (group.slots[i] >= sequences) space = std::max(space, group.kv_space[i]);
    }
  }
  std::int64_t fits = 0;
  std::int64_t most = kMaxTokens.count() / sequences;
  while (fits < most) {
    const std::int64_t middle = fits + (most - fits + 1) / 2;
    if (kv_.model().weight_of(Tokens{middle}) * sequences <= space) {
      fits = middle;
    } else {
      most = middle - 1;
    }
  }
  return Tokens{fits};
}

// Of a worker that has so many sequences; none once a limit below its slots is reached.
std::int32_t Ledger::free_slots(const Worker& worker, std::int32_t sequences) {
  const std::int32_t slots = worker.slots.decoding + worker.slots.ahead;
  return std::max(0, std::min(slots, worker.limit.value_or(slots)) - sequences);
}

// Gives the worker, idle, its place in its group's arrays.
void Ledger::attach(WorkerId worker) {
  const Worker& joining = workers_[worker.value()];
  Group& group = group_of(joining);
  const auto place = static_cast<std::size_t>(std::ranges::lower_bound(group.workers, worker) - group.workers.begin());
  insert_at(group.workers, place, worker);
  insert_at(group.loads, place, Tokens{0});
  insert_at(group.slots, place, joining.slots.decoding);
  insert_at(group.free_slots, place, free_slots(joining, 0));
  insert_at(group.sequences, place, 0);
  insert_at(group.load_growth, place, std::int64_t{0});
  const Tokens space = limited(joining) ? joining.kv.capacity - joining.kv.reserve : kUnlimitedKv;
  insert_at(group.kv_free, place, space);
  insert_at(group.kv_space, place, space);
  insert_at(group.kv_growth, place, std::int64_t{0});
  insert_at(group.eligible, place, std::uint8_t{0});
  refresh(joining.group);
}

void Ledger::detach(WorkerId worker) {
  const Worker& leaving = workers_[worker.value()];
  Group& group = group_of(leaving);
  const std::size_t place = leaving.position;
  erase_at(group.workers, place);
  erase_at(group.loads, place);
  erase_at(group.slots, place);
  erase_at(group.free_slots, place);
  erase_at(group.sequences, place);
  erase_at(group.load_growth, place);
  erase_at(group.kv_free, place);
  erase_at(group.kv_space, place);
  erase_at(group.kv_growth, place);
  erase_at(group.eligible, place);
  refresh(leaving.group);
}

// After a change of membership: positions, eligibility and the spans of the view.
void Ledger::refresh(GroupId id) {
  Group& group = groups_[id.value()];
  const bool suspect = group.barrier && group.dead > 0;
  for (std::size_t i = 0; i < group.workers.size(); ++i) {
    Worker& worker = workers_[group.workers[i].value()];
    worker.position = static_cast<std::uint32_t>(i);
    group.eligible[i] = worker.state == WorkerState::ready && !suspect ? 1 : 0;
  }
  views_[id.value()] = {.group = id,
                        .workers = group.workers,
                        .loads = group.loads,
                        .slots = group.slots,
                        .free_slots = group.free_slots,
                        .sequences = group.sequences,
                        .kv_free = group.kv_free,
                        .kv_space = group.kv_space,
                        .eligible = group.eligible};
}

std::expected<Lease, AdmitError> Ledger::reserve(WorkerId worker, const Request& request) {
  if (const auto sizes = check(request); !sizes) return std::unexpected(as_admit_error(sizes.error()));
  if (!knows(worker)) return std::unexpected(AdmitError::UnknownWorker);
  const Worker& taker = workers_[worker.value()];
  if (!attached(taker)) return std::unexpected(AdmitError::WorkerNotReady);
  Group& group = group_of(taker);
  const std::size_t place = taker.position;
  if (group.eligible[place] == 0) return std::unexpected(AdmitError::WorkerNotReady);
  if (group.free_slots[place] < request.sequences) return std::unexpected(AdmitError::NoFreeSlots);
  if (group.kv_free[place] < kv_on_entry(request)) return std::unexpected(AdmitError::NoKvSpace);

  const std::uint32_t index = take_entry();
  if (!by_request_.insert(request.id, index)) {
    unused_entries_.push_back(index);
    return std::unexpected(AdmitError::AlreadyAdmitted);
  }
  Entry& entry = entries_[index];
  entry = {.request = request,
           .worker = worker,
           .age = request.generated,
           .since = group.clock,
           .generation = entry.generation,
           .used = true};
  charge(entry, 1);
  if (observer_ != nullptr) observer_->taken(request, worker);
  return Lease{*this, index, entry.generation};
}

std::uint32_t Ledger::take_entry() {
  if (unused_entries_.empty()) {
    entries_.emplace_back();
    unused_entries_.reserve(entries_.capacity());  // so that giving back never allocates
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t index = unused_entries_.back();
  unused_entries_.pop_back();
  return index;
}

// Adds to its worker what an entry holds now, or takes it away.
void Ledger::charge(const Entry& entry, std::int64_t sign) {
  const Worker& worker = workers_[entry.worker.value()];
  Group& group = group_of(worker);
  const std::size_t place = worker.position;
  const auto sequences = static_cast<std::int32_t>(sign * entry.request.sequences);
  group.sequences[place] += sequences;
  group.free_slots[place] = free_slots(worker, group.sequences[place]);
  group.loads[place] += weight_now(entry) * sign;
  if (limited(worker)) group.kv_free[place] -= kv_now(entry) * sign;
}

// --- growth ---

void Ledger::advance(GroupId id, Steps steps) {
  assert(steps >= Steps{0});
  Group& group = groups_[id.value()];
  if (load_.model().steady() && kv_.model().steady()) return grow(group, steps);
  for (; steps > Steps{0}; steps -= Steps{1}) {
    grow(group, Steps{1});
    turn_growth(id);
  }
}

void Ledger::grow(Group& group, Steps steps) {
  group.clock += steps;
  for (std::size_t i = 0; i < group.loads.size(); ++i) {
    group.loads[i] += Tokens{group.load_growth[i] * steps.count()};
    group.kv_free[i] -= Tokens{group.kv_growth[i] * steps.count()};
  }
}

void Ledger::turn_growth(GroupId id) {
  Group& group = groups_[id.value()];
  const auto size_of = [this](std::uint32_t index) { return size_now(entries_[index]); };
  const auto place_of = [this](const Entry& entry) { return workers_[entry.worker.value()].position; };
  const auto turn_load = [&](std::uint32_t index, const GrowthWatch::Turn& turn) {
    const Entry& entry = entries_[index];
    group.loads[place_of(entry)] += turn.jump * entry.request.sequences;
    group.load_growth[place_of(entry)] += turn.bend * entry.request.sequences;
  };
  const auto turn_kv = [&](std::uint32_t index, const GrowthWatch::Turn& turn) {
    const Entry& entry = entries_[index];
    group.kv_free[place_of(entry)] -= turn.jump * entry.request.sequences;
    group.kv_growth[place_of(entry)] += turn.bend * entry.request.sequences;
  };
  load_.step(group.clock, size_of, turn_load, id.value());
  kv_.step(group.clock, size_of, turn_kv, id.value());
}

void Ledger::begin_growth(std::uint32_t index) {
  const Entry& entry = entries_[index];
  const Worker& worker = workers_[entry.worker.value()];
  Group& group = group_of(worker);
  const auto begin = [&](GrowthWatch& watch) {
    return watch.begin(index, size_now(entry), group.clock, worker.group.value()) * entry.request.sequences;
  };
  group.load_growth[worker.position] += begin(load_);
  if (limited(worker)) group.kv_growth[worker.position] += begin(kv_);
}

void Ledger::end_growth(std::uint32_t index) {
  const Entry& entry = entries_[index];
  const Worker& worker = workers_[entry.worker.value()];
  Group& group = group_of(worker);
  const auto end = [&](GrowthWatch& watch) { return watch.end(index, size_now(entry)) * entry.request.sequences; };
  group.load_growth[worker.position] -= end(load_);
  if (limited(worker)) group.kv_growth[worker.position] -= end(kv_);
}

Tokens Ledger::age_now(const Entry& entry) const {
  if (entry.state == LeaseState::dispatched) return entry.age;
  const Group& group = groups_[workers_[entry.worker.value()].group.value()];
  return entry.age + Tokens{(group.clock - entry.since).count()};
}

bool Ledger::is_live(const Lease& lease) const {
  return entries_[lease.entry_].generation == lease.generation_;
}

void Ledger::start(std::uint32_t index) {
  Entry& entry = entries_[index];
  if (entry.state == LeaseState::running) return;
  entry.state = LeaseState::running;
  entry.since = group_of(workers_[entry.worker.value()]).clock;
  begin_growth(index);
  if (observer_ != nullptr) observer_->aged(entry.request.id, entry.age);
}

void Ledger::correct(std::uint32_t index, Tokens generated) {
  start(index);
  settle(index, generated);
  if (observer_ != nullptr) observer_->aged(entries_[index].request.id, generated);
}

// Sets the age, and with it load and KV space.
void Ledger::settle(std::uint32_t index, Tokens generated) {
  assert(generated >= Tokens{0});
  Entry& entry = entries_[index];
  const bool running = entry.state == LeaseState::running;
  if (running) end_growth(index);
  charge(entry, -1);
  entry.age = generated;
  entry.since = group_of(workers_[entry.worker.value()]).clock;
  charge(entry, 1);
  if (running) begin_growth(index);
}

void Ledger::narrow(std::uint32_t index, Tokens generated) {
  Entry& entry = entries_[index];
  const bool running = entry.state == LeaseState::running;
  if (running) end_growth(index);
  charge(entry, -1);
  --entry.request.sequences;
  charge(entry, 1);
  if (running) begin_growth(index);
  if (observer_ != nullptr) observer_->narrowed(entry.request, generated);
}

void Ledger::give_back(std::uint32_t index, LeaseEnd how) {
  Entry& entry = entries_[index];
  const Tokens generated = age_now(entry);
  if (entry.state == LeaseState::running) end_growth(index);
  charge(entry, -1);
  by_request_.erase(entry.request.id);
  entry.used = false;
  ++entry.generation;  // the lease, wherever it is, is no longer live
  unused_entries_.push_back(index);
  if (observer_ != nullptr) observer_->ended(Request{entry.request}, generated, how);
}

void Ledger::void_leases(WorkerId worker) {
  for (std::uint32_t i = 0; i < entries_.size(); ++i) {
    if (entries_[i].used && entries_[i].worker == worker) give_back(i, LeaseEnd::cut);
  }
}

std::expected<Ledger::Worker*, WorkerError> Ledger::find_worker(WorkerId worker) {
  if (!knows(worker) || workers_[worker.value()].state == WorkerState::removed) {
    return std::unexpected(WorkerError::UnknownWorker);
  }
  return &workers_[worker.value()];
}

std::expected<void, WorkerError> Ledger::drain(WorkerId worker) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  if (!attached(**found)) return std::unexpected(WorkerError::WorkerDead);
  (*found)->state = WorkerState::draining;
  refresh((*found)->group);
  return {};
}

std::expected<void, WorkerError> Ledger::limit(WorkerId worker, std::optional<std::int32_t> sequences) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  (*found)->limit = sequences;
  if (!attached(**found)) return {};
  Group& group = group_of(**found);
  const std::size_t place = (*found)->position;
  group.free_slots[place] = free_slots(**found, group.sequences[place]);
  return {};
}

std::expected<void, WorkerError> Ledger::resume(WorkerId worker) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  if (!attached(**found)) return std::unexpected(WorkerError::WorkerDead);
  (*found)->state = WorkerState::ready;
  refresh((*found)->group);
  return {};
}

std::expected<void, WorkerError> Ledger::restart(WorkerId worker) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  Worker& restarted = **found;
  if (restarted.state != WorkerState::absent) ++restarted.incarnation;
  if (attached(restarted)) {
    void_leases(worker);
    return {};
  }
  if (restarted.state == WorkerState::dead) --group_of(restarted).dead;
  restarted.state = WorkerState::ready;
  attach(worker);
  return {};
}

std::expected<void, WorkerError> Ledger::declare_dead(WorkerId worker) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  if (!attached(**found)) return {};
  void_leases(worker);
  (*found)->state = WorkerState::dead;
  ++group_of(**found).dead;
  detach(worker);
  return {};
}

std::expected<void, WorkerError> Ledger::remove(WorkerId worker) {
  const auto found = find_worker(worker);
  if (!found) return std::unexpected(found.error());
  Worker& leaving = **found;
  if (!attached(leaving)) {
    if (leaving.state == WorkerState::dead) --group_of(leaving).dead;
    leaving.state = WorkerState::removed;
    refresh(leaving.group);
    return {};
  }
  if (group_of(leaving).sequences[leaving.position] > 0) return std::unexpected(WorkerError::StillBusy);
  leaving.state = WorkerState::removed;
  detach(worker);
  return {};
}

std::optional<std::size_t> Ledger::position(WorkerId worker) const {
  if (!knows(worker) || !attached(workers_[worker.value()])) return std::nullopt;
  return workers_[worker.value()].position;
}

std::optional<WorkerId> Ledger::worker_of(RequestId request) const {
  const auto index = by_request_.find(request);
  if (!index) return std::nullopt;
  return entries_[*index].worker;
}

WorkerRecord Ledger::worker(WorkerId worker) const {
  assert(knows(worker));
  const Worker& found = workers_[worker.value()];
  const Group& group = groups_[found.group.value()];
  WorkerRecord record{.id = worker,
                      .group = found.group,
                      .key = {.fleet = fleet_, .group = group.name, .url = found.url, .rank = found.rank},
                      .state = found.state,
                      .incarnation = found.incarnation,
                      .slots = found.slots,
                      .sequences = 0,
                      .load = Tokens{0},
                      .kv_free = kUnlimitedKv,
                      .eligible = false};
  if (attached(found)) {
    record.sequences = group.sequences[found.position];
    record.load = group.loads[found.position];
    record.kv_free = group.kv_free[found.position];
    record.eligible = group.eligible[found.position] != 0;
  }
  return record;
}

std::vector<LeaseRecord> Ledger::leases() const {
  std::vector<LeaseRecord> live;
  live.reserve(live_leases());
  for (const Entry& entry : entries_) {
    if (!entry.used) continue;
    live.push_back({.request = entry.request,
                    .worker = entry.worker,
                    .state = entry.state,
                    .generated = age_now(entry),
                    .weight = weight_now(entry),
                    .kv = kv_now(entry)});
  }
  std::ranges::sort(live, {}, [](const LeaseRecord& lease) { return lease.request.id; });
  return live;
}

}  // namespace balanceroute
