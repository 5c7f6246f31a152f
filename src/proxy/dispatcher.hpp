// dispatcher.hpp - the decode dispatcher: the one thread that decides, and how the others talk to it.
//
// A request's coroutine lives on an I/O thread and holds a Placement; ids and sizes go to the deciding thread, the
// chosen worker comes back. What the deciding thread holds for it is given back when the Placement ends, however the
// request ended.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "net/event.hpp"
#include "net/io_thread.hpp"
#include "policy/router.hpp"
#include "proxy/step_clock.hpp"

namespace balanceroute::proxy {

enum class PlacementError : std::uint8_t {
  QueueFull,         // as many requests wait as may
  NoWorkerReady,     // nobody takes admissions
  TooManySequences,  // more answers than any worker has slots
  TooManyTokens,
  Timeout,    // no worker within the deadline
  Cancelled,  // the client left
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
};

struct RequestSize {
  Tokens prompt;           // of one sequence, estimated
  std::int32_t sequences;  // decoded side by side
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

struct GroupSpec {
  std::string name;
  std::int32_t slots;
  KvSpace kv;                            // of one worker
  std::vector<std::string> worker_urls;  // one for each rank
};

struct DispatcherOptions {
  std::string fleet;
  RouterSettings router;
  bool barrier = true;
  net::Duration round_delay = std::chrono::milliseconds{3};
  std::size_t waiting_limit = 16'384;
  std::uint64_t seed = 0;  // of the policy's own draws
};

// What an operator sees of a fleet at one moment.
struct FleetSnapshot {
  std::string fleet;
  std::string policy;
  std::vector<WorkerRecord> workers;
  std::vector<LeaseRecord> leases;
  struct Group {
    std::string name;
    Steps steps;
    double step_ms;  // smoothed; 0 before the first step
    Tokens envelope;
    Tokens spread;
    Tokens imbalance;
  };
  std::vector<Group> groups;
  std::vector<std::size_t> queued;  // at each worker, by id
  std::size_t waiting = 0;
  std::uint64_t rounds = 0;
  std::uint64_t admissions = 0;
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
//   Threads  request() from I/O threads; snapshot() and explain() on the deciding thread. Must outlive its Placements.
class Dispatcher {
 public:
  Dispatcher(net::IoThread& decider, std::size_t io_threads, std::unique_ptr<Policy> policy, DispatcherOptions options,
             const std::vector<GroupSpec>& groups);
  ~Dispatcher();

  // `home_index` is the number of the I/O thread `home`.
  Placement request(net::IoThread& home, std::size_t home_index, RequestSize size);

  // Sums up the state; `with_leases` lists every lease.
  FleetSnapshot snapshot(bool with_leases) const;
  // Of a request that would come now.
  FleetExplanation explain(const RequestSize& size) const;
  net::IoThread& decider() { return decider_; }
  // Requests that have a Placement now. Any thread.
  std::size_t live() const { return live_.load(std::memory_order_relaxed); }

 private:
  friend class Placement;
  using State = Placement::State;

  struct Entry {
    std::shared_ptr<State> state;  // until it is answered
    Lease lease;
    bool answered = false;
  };
  struct GroupPace {
    Steps steps{0};
    net::TimePoint since{};
    double step_seconds = 0;
  };

  void submit(const Request& request, std::shared_ptr<State> state);
  void first_token(RequestId request);
  // `generated`: by each sequence of a request that is complete; none of one that was given up.
  void leave(RequestId request, std::optional<Tokens> generated);
  void schedule_round();
  void run_round();
  void follow_steps();
  net::Duration delay() const;
  static void answer(const std::shared_ptr<State>& state, std::expected<Placed, PlacementError> result);

  net::IoThread& decider_;
  DispatcherOptions options_;
  Router router_;
  StepClock step_clock_;
  std::vector<GroupPace> paces_;
  std::unordered_map<RequestId, Entry> entries_;
  net::Timer round_timer_;
  std::uint64_t rounds_ = 0;
  std::uint64_t admissions_ = 0;
  std::atomic<std::uint64_t> next_request_{0};
  std::atomic<std::size_t> live_{0};
};

}  // namespace balanceroute::proxy
