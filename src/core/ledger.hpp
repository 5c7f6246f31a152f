// ledger.hpp - who holds which slots, how much load and how much KV space, in every group of one fleet.
//
// Counts only: it does not choose, wait or read a clock. What is reserved is a Lease whose destructor gives it back.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/errors.hpp"
#include "core/group_view.hpp"
#include "core/growth_watch.hpp"
#include "core/id_map.hpp"
#include "core/ids.hpp"
#include "core/load_model.hpp"
#include "core/request.hpp"
#include "core/units.hpp"

namespace balanceroute {

class Ledger;

// WorkerKey is a worker's identity outside the process: the same in config, metrics and history, across restarts.
struct WorkerKey {
  std::string fleet;
  std::string group;
  std::string url;
  std::int32_t rank = 0;

  friend bool operator==(const WorkerKey&, const WorkerKey&) = default;
};

// absent: expected, but never seen; nobody at the barrier waits for it. ready: takes admissions. draining: at the
// barrier, takes none. dead: gone from the barrier, may be restarted. removed: gone for good.
enum class WorkerState : std::uint8_t { absent, ready, draining, dead, removed };
inline constexpr std::size_t kWorkerStates = 5;
// dispatched: charged, but its first token has not been seen. running: grows with its group's steps.
enum class LeaseState : std::uint8_t { dispatched, running };
// finished: all that it was to generate has been. cut: given back earlier, for whatever reason.
enum class LeaseEnd : std::uint8_t { finished, cut };

[[nodiscard]] std::string_view to_string(WorkerState state);
[[nodiscard]] std::string_view to_string(LeaseState state);

// LedgerObserver hears what becomes of every lease, once the books show it.
class LedgerObserver {
 public:
  virtual ~LedgerObserver() = default;

  virtual void taken(const Request& request, WorkerId worker) = 0;
  // It runs, each sequence has generated so many tokens, and from now on grows with its group's steps.
  virtual void aged(RequestId request, Tokens generated) = 0;
  // One of its sequences has ended with so many tokens; request.sequences of them go on.
  virtual void narrowed(const Request& request, Tokens generated) = 0;
  // Of the sequences that were left.
  virtual void ended(const Request& request, Tokens generated, LeaseEnd how) = 0;
};

// Lease is one request's hold on its slots, load and KV space; its end gives them back.
//   Invariants  move-only; a default, moved-from, released or voided one (its worker restarted, died or was removed) is
//               not live, and calls on it do nothing.
//   Threads     as its Ledger, which must outlive it.
class Lease {
 public:
  Lease() = default;
  Lease(Lease&& other) noexcept { swap(other); }
  Lease& operator=(Lease&& other) noexcept {
    Lease{std::move(other)}.swap(*this);
    return *this;
  }
  ~Lease() { release(); }

  [[nodiscard]] bool live() const;
  void release();
  // As release(), of a request that has run to its end: each sequence has generated so many tokens in all.
  void finish(Tokens generated);
  // One of its sequences has run to its end, with so many tokens in all, and gives back its slot, load and KV space;
  // the others go on. The last one ends the lease, as finish() does.
  void finish_one(Tokens generated);

  // The first token was seen: from now on the request grows with its group's steps.
  void started();
  // Each sequence has generated so many tokens in all, its age on entry included; implies started().
  void progress(Tokens generated);

 private:
  friend class Ledger;
  Lease(Ledger& ledger, std::uint32_t entry, std::uint32_t generation)
      : ledger_{&ledger}, entry_{entry}, generation_{generation} {}
  void swap(Lease& other) noexcept {
    std::swap(ledger_, other.ledger_);
    std::swap(entry_, other.entry_);
    std::swap(generation_, other.generation_);
  }

  Ledger* ledger_ = nullptr;
  std::uint32_t entry_ = 0;
  std::uint32_t generation_ = 0;
};

// LeaseRecord is one live lease as a person inspects it.
struct LeaseRecord {
  Request request;  // as it came, but for the sequences that have ended since
  WorkerId worker;
  LeaseState state;
  Tokens generated;  // by one sequence, those that it came with included
  Tokens weight;     // load of all its sequences now
  Tokens kv;         // KV space that they hold now
};

// WorkerSlots tells how many sequences a worker may be given.
struct WorkerSlots {
  constexpr WorkerSlots(std::int32_t at_once = 0, std::int32_t in_its_queue = 0)
      : decoding{at_once}, ahead{in_its_queue} {}

  std::int32_t decoding;  // that it decodes at once
  std::int32_t ahead;     // that may wait inside it besides, so that it has the next one when a sequence ends
};

// WorkerRecord is one worker as a person inspects it.
struct WorkerRecord {
  WorkerId id;
  GroupId group;
  WorkerKey key;
  WorkerState state;
  std::uint32_t incarnation;
  WorkerSlots slots;
  std::int32_t sequences;
  Tokens load;
  Tokens kv_free;  // as in GroupView; kUnlimitedKv for a worker that is not attached
  bool eligible;
};

// KvSpace is what a worker can hold, in tokens.
struct KvSpace {
  Tokens capacity = kUnlimitedKv;
  Tokens reserve{0};  // kept from admissions, for what runs to grow into
};

struct LedgerSettings {
  LoadModel load_model;
  Tokens kv_block{1};  // a sequence holds whole blocks of so many tokens
};

// Ledger counts slots, sequences, load and KV space of every worker of one fleet.
//   Units       load in tokens a step (step_load); slots in sequences; KV space in tokens resident (kv_resident).
//   Invariants  a worker's sequences, load and KV space are the sums over its live leases, so never negative, and zero
//               when none is live; a request has at most one live lease. KV space is counted where it is limited, and
//               only admissions keep to it: what runs grows on.
//   Cost        reserve, started, progress and every way to give back O(1); restart and dead O(leases). advance
//   O(workers of the group) a
//               call with one-token blocks and a steady load model; else a step O(workers + sequences whose growth
//               changes in it), a 16th of all that run for blocks of 16.
//   Threads     not synchronised: one deciding thread owns it and every Lease it gave out.
class Ledger {
 public:
  explicit Ledger(std::string fleet, const LedgerSettings& settings = {});
  Ledger(const Ledger&) = delete;
  Ledger& operator=(const Ledger&) = delete;

  // The one that is told; it must outlive the ledger. None at first.
  void observe(LedgerObserver& observer) { observer_ = &observer; }

  // A barrier means that the group's workers step together: a dead one stops admissions to all.
  GroupId add_group(std::string name, bool barrier = true);
  // It is ready at once, or absent until restart() says that it came.
  [[nodiscard]] std::expected<WorkerId, WorkerError> add_worker(GroupId group, std::string url, std::int32_t rank,
                                                                WorkerSlots slots, const KvSpace& kv = {},
                                                                WorkerState state = WorkerState::ready);

  // Charges slots, load and KV space at once (state dispatched).
  [[nodiscard]] std::expected<Lease, AdmitError> reserve(WorkerId worker, const Request& request);

  // The group took so many steps: each running sequence has grown by as many tokens.
  void advance(GroupId group, Steps steps);

  // ready -> draining and back.
  [[nodiscard]] std::expected<void, WorkerError> drain(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> resume(WorkerId worker);
  // From now on it is given requests only while it has fewer sequences than that; none: as many as it has slots.
  [[nodiscard]] std::expected<void, WorkerError> limit(WorkerId worker, std::optional<std::int32_t> sequences);
  // The engine came back with nothing of before: raises the incarnation and voids the worker's leases. A dead worker is
  // ready again, a draining one goes on draining. An absent one came for the first time and is ready.
  [[nodiscard]] std::expected<void, WorkerError> restart(WorkerId worker);
  // The engine is gone: voids the worker's leases and takes it from the barrier.
  [[nodiscard]] std::expected<void, WorkerError> declare_dead(WorkerId worker);
  // Takes a worker without leases out of the fleet for good.
  [[nodiscard]] std::expected<void, WorkerError> remove(WorkerId worker);

  [[nodiscard]] std::span<const GroupView> groups() const { return views_; }
  [[nodiscard]] const GroupView& view(GroupId group) const { return views_[group.value()]; }
  [[nodiscard]] std::string_view group_name(GroupId group) const { return groups_[group.value()].name; }
  [[nodiscard]] std::size_t worker_count() const { return workers_.size(); }  // every id ever given, removed ones too
  [[nodiscard]] bool knows(WorkerId worker) const { return worker.value() < workers_.size(); }
  [[nodiscard]] WorkerRecord worker(WorkerId worker) const;
  [[nodiscard]] GroupId group_of(WorkerId worker) const { return workers_[worker.value()].group; }
  [[nodiscard]] std::uint32_t incarnation(WorkerId worker) const { return workers_[worker.value()].incarnation; }
  // Its place in its group's view; none if it is not at the barrier.
  [[nodiscard]] std::optional<std::size_t> position(WorkerId worker) const;
  [[nodiscard]] std::optional<WorkerId> worker_of(RequestId request) const;
  [[nodiscard]] const LoadModel& load_model() const { return load_.model(); }
  // KV space that the request takes as it is admitted.
  [[nodiscard]] Tokens kv_on_entry(const Request& request) const { return kv_.model().weight_on_entry(request); }
  // The longest prompt of so many sequences that any worker at a barrier could hold if it were idle.
  [[nodiscard]] Tokens largest_prompt(std::int32_t sequences) const;

  [[nodiscard]] std::size_t live_leases() const { return by_request_.size(); }
  // Every live lease, by rising request id.
  [[nodiscard]] std::vector<LeaseRecord> leases() const;

 private:
  friend class Lease;

  // Structure of arrays, an entry a worker at the barrier, in WorkerId order.
  struct Group {
    std::string name;
    bool barrier = true;
    std::int32_t dead = 0;  // members that are dead
    Steps clock{0};
    std::vector<WorkerId> workers;
    std::vector<Tokens> loads;
    std::vector<std::int32_t> slots;
    std::vector<std::int32_t> free_slots;
    std::vector<std::int32_t> sequences;
    std::vector<std::int64_t> load_growth;  // tokens a step
    std::vector<Tokens> kv_free;
    std::vector<Tokens> kv_space;
    std::vector<std::int64_t> kv_growth;  // tokens a step
    std::vector<std::uint8_t> eligible;
  };
  struct Worker {
    GroupId group;
    std::string url;
    std::int32_t rank = 0;
    WorkerSlots slots;
    KvSpace kv;
    std::optional<std::int32_t> limit{};  // of sequences, below its slots
    std::uint32_t incarnation = 0;
    std::uint32_t position = 0;  // while attached
    WorkerState state = WorkerState::ready;
  };
  // A running request's age is `age` plus the group's steps after `since`, so a step touches no entry but those whose
  // growth changes in it.
  struct Entry {
    Request request;  // `sequences` of it are left
    WorkerId worker;
    Tokens age{0};
    Steps since{0};
    std::uint32_t generation = 0;
    LeaseState state = LeaseState::dispatched;
    bool used = false;
  };

  [[nodiscard]] static bool attached(const Worker& worker) {
    return worker.state == WorkerState::ready || worker.state == WorkerState::draining;
  }
  [[nodiscard]] std::expected<Worker*, WorkerError> find_worker(WorkerId worker);
  [[nodiscard]] Group& group_of(const Worker& worker) { return groups_[worker.group.value()]; }
  [[nodiscard]] static std::int32_t free_slots(const Worker& worker, std::int32_t sequences);
  void attach(WorkerId worker);
  void detach(WorkerId worker);
  void refresh(GroupId group);

  [[nodiscard]] Tokens age_now(const Entry& entry) const;
  [[nodiscard]] Tokens size_now(const Entry& entry) const { return entry.request.prompt + age_now(entry); }
  [[nodiscard]] Tokens weight_now(const Entry& entry) const {
    return load_.model().weight_at(entry.request, age_now(entry));
  }
  [[nodiscard]] Tokens kv_now(const Entry& entry) const { return kv_.model().weight_at(entry.request, age_now(entry)); }
  [[nodiscard]] std::uint32_t take_entry();
  void void_leases(WorkerId worker);

  [[nodiscard]] static bool limited(const Worker& worker) { return worker.kv.capacity < kUnlimitedKv; }
  void charge(const Entry& entry, std::int64_t sign);
  void begin_growth(std::uint32_t index);
  void end_growth(std::uint32_t index);
  static void grow(Group& group, Steps steps);
  void turn_growth(GroupId id);

  [[nodiscard]] bool is_live(const Lease& lease) const;
  void start(std::uint32_t index);
  void correct(std::uint32_t index, Tokens generated);
  void settle(std::uint32_t index, Tokens generated);
  void narrow(std::uint32_t index, Tokens generated);
  void give_back(std::uint32_t index, LeaseEnd how);

  std::string fleet_;
  GrowthWatch load_;
  GrowthWatch kv_;  // in blocks
  std::vector<Group> groups_;
  std::vector<GroupView> views_;
  std::vector<Worker> workers_;
  std::vector<Entry> entries_;
  std::vector<std::uint32_t> unused_entries_;
  IdMap by_request_;
  LedgerObserver* observer_ = nullptr;
};

}  // namespace balanceroute
