// router.hpp - the one code path from a waiting request to a worker, in the simulator and in the live router alike.
//
// Pure: no clock, I/O or threads. The owner says when requests come, when a group steps and when to decide.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/errors.hpp"
#include "core/id_map.hpp"
#include "core/ledger.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "policy/policy.hpp"

namespace balanceroute {

// Admission is one request on its worker, and why it is there. Take the lease out of it: what is left in it when the
// next round begins is given back.
struct Admission {
  Request request;
  WorkerId worker;
  std::uint32_t incarnation;  // of the worker, when the slots were taken
  Lease lease;

  Stage stage;
  std::int32_t set_size;  // requests chosen together
  double score;           // of that set, as the policy's score_meaning() says
  Tokens margin;          // the worker's room below the envelope just before
  struct Alternative {
    WorkerId worker;
    double score;
  };
  std::optional<Alternative> runner_up{};
};

// WorkerScore is what a policy thinks of one worker for one request.
struct WorkerScore {
  WorkerId worker;
  bool eligible;
  std::int32_t free_slots;
  Tokens kv_free;
  Tokens load;
  Tokens margin;
  double score;
};

// Router asks pool, policy and ledger in that order, for one fleet.
//   Waiting     under a pooled policy requests wait in the pool; under an immediate one in the queue of the worker they
//               were bound to, and in the pool only while no worker can be bound to.
//   Invariants  a request waits in one place or has one lease; a worker never holds more sequences than slots, nor is
//               it given more than its KV space; while a worker has room, no request waits in front of it that its
//               policy could give it.
//   Threads     not synchronised: one deciding thread owns it and every lease it gave out. It must outlive them.
class Router final : private LedgerObserver {
 public:
  Router(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, const LedgerSettings& books = {});

  // Membership. Queued requests of a worker that takes no more admissions are bound anew, in order of arrival; those of
  // a restarted one keep their places.
  GroupId add_group(std::string name, bool barrier = true);
  [[nodiscard]] std::expected<WorkerId, WorkerError> add_worker(GroupId group, std::string url, std::int32_t rank,
                                                                std::int32_t slots, const KvSpace& kv = {});
  [[nodiscard]] std::expected<void, WorkerError> drain(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> resume(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> restart(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> declare_dead(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> remove(WorkerId worker);

  // Requests.
  [[nodiscard]] std::expected<void, SubmitError> submit(const Request& request);
  // Takes back a request that still waits; false if it does not.
  bool withdraw(RequestId request);

  // Takes in a request that the worker runs already, with its age: what a router finds when it starts.
  [[nodiscard]] std::expected<Lease, AdmitError> adopt(WorkerId worker, const Request& request);

  // Admits what the policy gives the group's free slots now. Valid until the next round.
  [[nodiscard]] std::span<Admission> round(GroupId group, bool explain = false);
  // The same for every group, the one with the least load per slot first.
  [[nodiscard]] std::span<Admission> round_all(bool explain = false);

  void advance(GroupId group, Steps steps);

  // Requests that wait move over to the new policy, in order of arrival.
  void set_policy(std::unique_ptr<Policy> policy);
  [[nodiscard]] const Policy& policy() const { return *policy_; }

  // What the policy thinks of each worker of the group for such a request, now.
  [[nodiscard]] std::vector<WorkerScore> explain(GroupId group, const Request& request) const;

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }  // in the pool and all queues
  [[nodiscard]] std::span<const Candidate> pooled() const { return pool_.candidates(); }
  [[nodiscard]] std::span<const Candidate> queued_at(WorkerId worker) const {
    return queues_[worker.value()].candidates();
  }
  [[nodiscard]] const Queued& queue_total(WorkerId worker) const { return queued_[worker.value()]; }
  // Choices that the ledger refused: a fault of the policy; the request went on waiting.
  [[nodiscard]] std::uint64_t refused_choices() const { return refused_choices_; }

 private:
  void taken(const Request& request, WorkerId worker) override;
  void aged(RequestId request, Tokens generated) override;
  void ended(const Request& request, Tokens generated, LeaseEnd how) override;
  void brief_policy();

  [[nodiscard]] FleetView fleet_view() const { return {ledger_.groups(), queued_}; }
  [[nodiscard]] std::optional<SubmitError> obstacle(const Request& request) const;
  [[nodiscard]] std::optional<SubmitError> without_taker(const Request& request) const;
  [[nodiscard]] Candidate candidate_of(const Request& request) const;
  void place(const Candidate& candidate);
  void rebind();
  void take_queue(WorkerId worker);
  void count_queued(WorkerId worker, const Candidate& candidate, std::int64_t sign);

  void serve(GroupId group, bool explain);
  void decide_from_pool(GroupId group, PooledPolicy& policy, bool explain);
  void serve_queues(GroupId group, const ImmediatePolicy& policy, bool explain);
  bool admit(GroupId group, const Candidate& candidate, const Choice& choice);
  [[nodiscard]] std::optional<RunnerUp> next_best(const ImmediatePolicy& policy, const GroupView& group,
                                                  std::size_t worker, const Candidate& candidate) const;

  Ledger ledger_;
  Pool pool_;
  std::vector<Pool> queues_;    // by WorkerId
  std::vector<Queued> queued_;  // their totals
  IdMap waiting_;               // request -> WorkerId value of its queue, or kInPool
  std::unique_ptr<Policy> policy_;
  Random random_;
  std::uint64_t next_serial_ = 0;
  std::uint64_t refused_choices_ = 0;

  // A round's scratch; the memory stays.
  std::vector<Admission> admissions_;
  std::vector<Choice> choices_;
  std::vector<std::size_t> taken_;
  std::vector<Candidate> moving_;
  std::vector<GroupId> visits_;
};

}  // namespace balanceroute
