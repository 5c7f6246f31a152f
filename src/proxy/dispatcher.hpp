// dispatcher.hpp - the decode dispatcher: the one thread that decides, and how the others talk to it.
//
// A request's coroutine lives on an I/O thread and holds a Placement; ids and sizes go to the deciding thread, the
// chosen worker comes back. What the deciding thread holds for it is given back when the Placement ends, however the
// request ended.
#pragma once

#include <array>
#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <deque>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/tenants.hpp"
#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "policy/router.hpp"
#include "proxy/decision_trail.hpp"
#include "proxy/fallback.hpp"
#include "proxy/group_meter.hpp"
#include "proxy/member_status.hpp"
#include "proxy/prefill_book.hpp"
#include "proxy/rate_meter.hpp"
#include "proxy/shadow_report.hpp"
#include "proxy/step_clock.hpp"
#include "proxy/worker_pulse.hpp"
#include "telemetry/time_histogram.hpp"

namespace balanceroute::proxy {

enum class PlacementError : std::uint8_t {
  QueueFull,         // as many requests wait as may
  NoWorkerReady,     // nobody takes admissions
  NoPrefillReady,    // no prefill instance answers
  TooManySequences,  // more answers than any worker has slots
  TooManyTokens,
  ExceedsQuota,  // more answers than its tenant may ever have at once
  Timeout,       // no worker within the deadline
  HoldExpired,   // no worker while its KV may be held for it
  Cancelled,     // the client left
  Internal
};

std::string_view to_string(PlacementError error);

// Where a request goes.
struct Placed {
  WorkerId worker;
  GroupId group;
  // Why there: the rule, what it scored, and the worker's room below the envelope just before.
  Stage stage;
  double score;
  Tokens margin;
  WorkerPulse* pulse = nullptr;  // to be told of tokens
  std::string_view policy{};     // that decides now
};

struct RequestSize {
  Tokens prompt;           // of one sequence
  std::int32_t sequences;  // decoded side by side
  bool reports = true;     // its answer is streamed, so that its tokens are seen
  bool counted = true;     // the prompt is exact, not an estimate
  // As in Request.
  Tokens output_limit = kMaxTokens;
  std::uint64_t prompt_key = 0;
  // Its KV comes from a prefill instance, which may hold it so long.
  std::optional<net::TimePoint> hold_until{};
  // Workers that have failed it.
  std::vector<WorkerId> avoid{};
};

class Dispatcher;

// Placement is one request's claim on a worker: a place in the queue first, then slots and load.
//   Threads  only on the I/O thread it was asked from. Its destructor gives everything back.
class Placement {
 public:
  Placement(Placement&& other) noexcept;
  Placement& operator=(Placement&&) = delete;
  ~Placement() { leave(); }

  // Waits for a worker.
  net::asio::awaitable<std::expected<Placed, PlacementError>> placed(net::TimePoint deadline);
  // The streams of the request have brought so many tokens in all; the first call says that it runs.
  void progress(std::int64_t tokens);
  // One of several answers is complete, with so many tokens; its slot and load are free, the others go on.
  void finish_one(std::int64_t tokens);
  // Gives back slots and load, or the place in the queue. Later calls of either do nothing.
  void leave();
  // As leave(), of a request whose answers are complete: each has so many tokens.
  void finish(std::int64_t tokens);

 private:
  friend class Dispatcher;
  struct State;
  Placement(Dispatcher& dispatcher, std::shared_ptr<State> state);

  void end(std::optional<Tokens> generated);

  Dispatcher* dispatcher_;
  std::shared_ptr<State> state_;
};

// What has come and gone at one worker, in sequences.
struct WorkerActivity {
  std::int64_t admitted = 0;
  std::int64_t ended = 0;
  std::int64_t not_started = 0;  // of those that are there: the engine may not have them yet
  std::int64_t ahead = 0;        // sent beyond its slots, in no books yet
};

// PlacementObserver hears what became of placements, on the deciding thread.
class PlacementObserver {
 public:
  virtual ~PlacementObserver() = default;
  // The worker has been given one.
  virtual void began(WorkerId worker) = 0;
  // The worker no longer serves one; `complete` if every answer of it came to its end.
  virtual void ended(WorkerId worker, bool complete) = 0;
};

struct DispatcherOptions {
  std::string fleet;
  RouterSettings router;
  bool barrier = true;
  net::Duration round_delay = std::chrono::milliseconds{3};
  std::size_t waiting_limit = 16'384;
  std::int32_t overcommit = 2;                   // requests beyond a worker's slots whose KV can wait no longer
  std::size_t transfers_limit = std::size_t{8};  // of one worker at once
  std::uint64_t seed = 0;                        // of the policy's own draws
};

inline constexpr std::size_t kStages = static_cast<std::size_t>(Stage::late) + 1;

// How well a policy's predictor has done.
struct PredictorStanding {
  std::string name;
  std::int64_t horizon_steps;
  std::int64_t predictions;  // whose outcome is known
  double mean_predicted;     // chance of an end within the horizon
  double mean_happened;
  double brier_score;
  double brier_reference;  // of always saying mean_happened
  KeyHits key_hits;
};

// What an operator sees of a fleet at one moment.
struct FleetSnapshot {
  std::string fleet;
  std::string policy;         // that decides now
  std::string chosen_policy;  // that is set
  std::vector<WorkerRecord> workers;
  std::vector<MemberStatus> members;  // by WorkerId, as workers
  std::vector<LeaseRecord> leases;
  struct Group {
    std::string name;
    Steps steps;
    double step_ms;  // smoothed; 0 before the first step
    Tokens envelope;
    Tokens spread;
    Tokens imbalance;
    GroupMeasures measures;
  };
  std::vector<Group> groups;
  std::vector<std::size_t> queued;  // at each worker, by id
  struct Tenant {
    std::string name;
    Eligibility::Standing standing;
  };
  std::vector<Tenant> tenants;  // the default one first
  std::size_t waiting = 0;
  std::uint64_t rounds = 0;
  std::uint64_t slow_rounds = 0;
  std::uint64_t policy_errors = 0;
  std::uint64_t admissions = 0;
  std::array<std::uint64_t, kStages> admissions_by_stage{};
  telemetry::TimeHistogram round_times;
  std::string score_meaning;
  std::optional<PredictorStanding> predictor;
  std::uint64_t forced_holds = 0;
  std::uint64_t holds_expired = 0;
  std::optional<PrefillSnapshot> prefill;
  std::vector<PrefillStatus> prefill_health;  // by PrefillId
  FallbackStatus fallback;
  std::optional<ShadowReport> shadow;
};

// What a fleet's policy thinks of each worker for one request.
struct FleetExplanation {
  std::string fleet;
  std::string policy;
  std::string score_meaning;
  struct Worker {
    WorkerKey key;
    WorkerScore score;
  };
  std::vector<Worker> workers;
};

// Dispatcher runs the Router of one fleet on its deciding thread.
//   Rounds   the first arrival or departure starts a delay (a tenth of the step time, at most round_delay), so that
//            one round sees all departures and arrivals of a step together; a fleet that runs nothing decides at once.
//   Threads  request() from I/O threads; snapshot(), explain(), step_trails() and decisions_after() on the deciding
//            thread. Must outlive its Placements.
class Dispatcher {
 public:
  Dispatcher(net::IoThread& decider, std::size_t io_threads, std::unique_ptr<Policy> policy, DispatcherOptions options,
             const std::vector<std::string>& groups);
  ~Dispatcher();

  // `home_index` is the number of the I/O thread `home`; `tenant` is by name, an unknown one is the default tenant.
  Placement request(net::IoThread& home, std::size_t home_index, RequestSize size, std::string tenant);

  // What the prefill side goes by: requests that wait for a worker, and room for them now and soon. Deciding thread.
  struct PoolState {
    std::size_t waiting = 0;
    std::size_t free_slots = 0;
    std::size_t workers_ready = 0;
    std::optional<double> releases_per_second;  // smoothed; nothing before the first
  };
  PoolState pool_state() const;
  // Called on the deciding thread whenever the pool may have become smaller.
  void on_pool_change(std::function<void()> changed) { pool_changed_ = std::move(changed); }

  // Sums up the state; `with_leases` lists every lease.
  FleetSnapshot snapshot(bool with_leases);
  // Of a request that would come now.
  FleetExplanation explain(const RequestSize& size);
  // The latest steps of each group, by GroupId.
  std::vector<StepTrail> step_trails() const;
  // The latest decisions after that serial. While somebody `watches`, runners-up are looked for, which costs a little.
  std::vector<DecisionRecord> decisions_after(std::uint64_t serial) const { return trail_.after(serial); }
  void watch_decisions(bool watches) { watched_ = watches; }

  // Changes membership or policy, and lets a round follow. On the deciding thread, as are the two below, or before it
  // runs.
  template <class Change>
  auto change(Change change_router) {
    router_.set_now(decider_.now().time_since_epoch());
    follow_steps();
    auto result = change_router(router_);
    fit_tables();
    schedule_round();
    return result;
  }
  // Who shares the fleet from now on; requests of those that are named no more go on.
  void set_tenants(const std::vector<TenantParams>& tenants);
  // Another policy that is asked in each round: its time is not that of the one that decides. It outlives the threads.
  void watch_shadow(const Shadow& shadow) { shadow_ = &shadow; }
  // A round that takes longer is slow; how many were.
  void set_slow_round(net::Duration longest) { slow_round_ = longest; }
  [[nodiscard]] std::uint64_t slow_rounds() const { return slow_rounds_; }
  void set_waiting_limit(std::size_t requests) { options_.waiting_limit = requests; }
  [[nodiscard]] const Router& router() const { return router_; }
  // The same, at the step that the streams show. On the deciding thread.
  const Router& router_now() {
    follow_steps();
    return router_;
  }
  WorkerPulse& pulse(WorkerId worker) { return pulses_[worker.value()]; }
  [[nodiscard]] WorkerActivity activity(WorkerId worker) const;
  // The one that is told; it must outlive the threads.
  void observe(PlacementObserver& observer) { observer_ = &observer; }

  net::IoThread& decider() { return decider_; }
  // Requests that have a Placement now. Any thread.
  std::size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  friend class Placement;
  using State = Placement::State;

  struct Entry {
    Request request;
    std::shared_ptr<State> state;  // until it is answered
    Lease lease;
    bool reports = true;
    bool transfers = false;            // counted among its worker's transfers once it is given one
    std::optional<WorkerId> carrying;  // the worker that fetches its KV now
    std::optional<WorkerId> ahead;     // sent there before a slot was free
    std::optional<Placed> placed;      // chosen, and held back until the worker has fetched more
    net::TimePoint arrived{};
    net::TimePoint sent{};
    WorkerId worker{};             // that it was sent to
    bool has_slots = false;        // it has had a lease there
    bool started = false;          // its first token was seen
    std::optional<Steps> begin{};  // the step of the group that its tokens count from
    bool settled = false;          // the beginning was looked at
    std::shared_ptr<State> streams;
  };
  struct GroupPace {
    Steps steps{0};
    net::TimePoint since{};
    double step_seconds = 0;  // smoothed; 0 before the first

    [[nodiscard]] net::Duration half_step() const;
  };

  void submit(Request request, const RequestSize& size, std::shared_ptr<State> state);
  Entry& enter(const Request& request, const RequestSize& size, std::shared_ptr<State> state);
  bool place_elsewhere(const Request& request, const RequestSize& size, const std::shared_ptr<State>& state);
  std::optional<WorkerId> least_loaded_but(const Request& request, const std::vector<WorkerId>& avoid) const;
  // Its tokens count from that step of its group.
  void runs_since(RequestId request, Steps begin);
  void age(Entry& entry);
  GroupPace& pace_of(const Entry& entry);
  void look_soon();
  void look_at_streams();
  bool settle(Entry& entry);
  Tokens tokens_shown(const Entry& entry, net::TimePoint latest_step);
  void finish_one(RequestId request, Tokens generated);
  // `generated`: by each sequence of a request that is complete; none of one that was given up.
  void leave(RequestId request, std::optional<Tokens> generated);
  void schedule_round();
  void run_round();
  std::span<Admission> decide();
  void note(const Admission& admission, const Entry& entry);
  void follow_steps();
  void fit_tables();
  void presume_running();
  void hand_out(Entry& entry, Placed placed);
  void has_slots(Entry& entry, WorkerId worker);
  void has_started(Entry& entry);
  void end_transfer(Entry& entry);
  void reap();
  std::optional<WorkerId> worker_beyond_slots() const;
  void seat_those_ahead();
  void leave_line(const Entry& entry);
  net::Duration delay() const;
  static void answer(const std::shared_ptr<State>& state, std::expected<Placed, PlacementError> result);

  net::IoThread& decider_;
  std::function<void()> pool_changed_ = [] {};
  RateMeter releases_{std::chrono::seconds{10}};
  DispatcherOptions options_;
  Router router_;
  Tenants tenants_;
  StepClock step_clock_;
  std::deque<WorkerPulse> pulses_;  // by WorkerId; they stay where they are
  std::vector<WorkerActivity> activity_;
  PlacementObserver* observer_ = nullptr;
  std::vector<GroupPace> paces_;
  std::vector<GroupMeter> meters_;  // by GroupId, as paces
  DecisionTrail trail_;
  bool watched_ = false;
  std::unordered_map<RequestId, Entry> entries_;
  net::Timer round_timer_;
  std::deque<std::pair<net::TimePoint, RequestId>> holds_;  // by their end; may name requests that have left
  net::Timer hold_timer_;
  net::Timer look_timer_;
  net::TimePoint next_look_{};        // at all streams
  std::vector<RequestId> newcomers_;  // not looked at yet, or within a step then; may name requests that have left
  std::vector<std::deque<RequestId>> ahead_;                     // by worker: those sent before a slot was free
  std::vector<std::size_t> transfers_;                           // by worker
  std::vector<std::deque<RequestId>> held_back_;                 // by worker: chosen, waiting for a transfer to end
  std::deque<std::pair<net::TimePoint, RequestId>> unreported_;  // when they will run, presumably
  double first_token_seconds_ = 0;                               // from admission, smoothed
  std::uint64_t forced_holds_ = 0;
  std::uint64_t holds_expired_ = 0;
  std::uint64_t rounds_ = 0;
  net::Duration slow_round_ = net::Duration::max();
  std::uint64_t slow_rounds_ = 0;
  const Shadow* shadow_ = nullptr;
  std::uint64_t admissions_ = 0;
  std::array<std::uint64_t, kStages> admissions_by_stage_{};
  telemetry::TimeHistogram round_times_;
  std::atomic<std::uint64_t> next_request_{0};
  std::atomic<std::size_t> live_{0};
};

}  // namespace balanceroute::proxy
