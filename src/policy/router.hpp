// router.hpp - the one code path from a waiting request to a worker, in the simulator and in the live router alike.
//
// Pure: no clock, I/O or threads. The owner says when requests come, when a group steps, when to decide and what time
// it is.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <expected>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/eligibility.hpp"
#include "core/errors.hpp"
#include "core/id_map.hpp"
#include "core/ledger.hpp"
#include "core/patience.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "policy/admission.hpp"
#include "policy/policy.hpp"
#include "policy/router_event.hpp"
#include "policy/shadow/step_shadow.hpp"

namespace balanceroute {

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

struct RouterSettings {
  LedgerSettings books{};
  std::optional<std::chrono::nanoseconds> max_wait{};  // none: as Patience finds it
  RouterListener* listener = nullptr;                  // outlives the router
};

// Router asks pool, policy and ledger in that order, for one fleet.
//   Waiting     under a pooled policy requests wait in the pool; under an immediate one in the queue of the worker they
//               were bound to, and in the pool only while no worker can be bound to; in both in the order of their
//               turns (Eligibility). A request beyond its tenant's quota is parked until a round finds room in it.
//   Lateness    a request that has waited for longer than max_wait is late: late ones go first, in order of arrival,
//               each to the least loaded worker that has room. While the first has none in a group, one worker there
//               is kept for it, which takes nothing else; so its wait ends when that worker's requests have.
//   Invariants  a request waits in one place or has one lease; a worker never holds more sequences than slots and those
//   ahead, nor is
//               it given more than its KV space; while a worker has room, no request waits in front of it that its
//               policy could give it.
//   Threads     not synchronised: one deciding thread owns it and every lease it gave out. It must outlive them.
class Router final : private LedgerObserver {
 public:
  Router(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, const RouterSettings& settings = {});

  // The present moment of the owner's clock; it never goes back. Waits are counted by it.
  void set_now(std::chrono::nanoseconds now);

  // A tenant beside the default one, whose requests then name it.
  TenantId add_tenant(const TenantTerms& terms);
  // Other terms from now on; what runs and waits stays.
  void set_terms(TenantId tenant, const TenantTerms& terms);
  [[nodiscard]] Eligibility::Standing standing(TenantId tenant) const { return eligibility_.standing(tenant); }

  // Tells the policy of a request of an earlier time that is over: before anything runs or waits.
  void learn(const Request& request, Tokens generated, LeaseEnd how);

  // Membership. Queued requests of a worker that takes no more admissions are bound anew, in the order of their turns;
  // those of a restarted one keep their places.
  GroupId add_group(std::string name, bool barrier = true);
  [[nodiscard]] std::expected<WorkerId, WorkerError> add_worker(GroupId group, std::string url, std::int32_t rank,
                                                                WorkerSlots slots, const KvSpace& kv = {},
                                                                WorkerState state = WorkerState::ready);
  [[nodiscard]] std::expected<void, WorkerError> drain(WorkerId worker);
  [[nodiscard]] std::expected<void, WorkerError> resume(WorkerId worker);
  // As Ledger::limit().
  [[nodiscard]] std::expected<void, WorkerError> limit(WorkerId worker, std::optional<std::int32_t> sequences);
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

  // Requests that wait move over to the new policy, in the order of their turns. `settings` are those that it was made
  // from: the listener is told, and how long requests may wait is as they say.
  void set_policy(std::unique_ptr<Policy> policy, const PolicyParams& settings = {});
  // A simpler policy decides until restore() or set_policy(); the chosen one goes on hearing everything. Again: another
  // one in its place.
  void degrade(std::unique_ptr<Policy> simpler, const PolicyParams& settings = {});
  void restore();
  // The one that decides, and the one that would if it had not given way.
  [[nodiscard]] const Policy& policy() const { return *policy_; }
  [[nodiscard]] const Policy& chosen_policy() const { return resting_ ? *resting_ : *policy_; }
  // What another policy would do in each round; none: nobody is asked.
  void set_shadow(std::unique_ptr<StepShadow> shadow);
  [[nodiscard]] const StepShadow* shadow() const { return shadow_.get(); }

  // What the policy thinks of each worker of the group for such a request, now.
  [[nodiscard]] std::vector<WorkerScore> explain(GroupId group, const Request& request) const;

  [[nodiscard]] const Ledger& ledger() const { return ledger_; }
  [[nodiscard]] std::size_t waiting() const { return waiting_.size(); }  // in the pool and all queues, and parked
  [[nodiscard]] std::size_t parked() const { return eligibility_.parked(); }
  [[nodiscard]] std::span<const Candidate> pooled() const { return pool_.candidates(); }
  [[nodiscard]] std::span<const Candidate> queued_at(WorkerId worker) const {
    return queues_[worker.value()].candidates();
  }
  [[nodiscard]] const Queued& queue_total(WorkerId worker) const { return queued_[worker.value()]; }
  // Choices that the ledger refused, and calls of a policy that ended by an exception: faults of the policy; requests
  // went on waiting.
  [[nodiscard]] std::uint64_t refused_choices() const { return refused_choices_; }
  [[nodiscard]] std::uint64_t broken_calls() const { return broken_calls_; }

 private:
  void taken(const Request& request, WorkerId worker) override;
  void aged(RequestId request, Tokens generated) override;
  void narrowed(const Request& request, Tokens generated) override;
  void ended(const Request& request, Tokens generated, LeaseEnd how) override;
  // Tells every policy that hears: the one that decides, the one that rests and the shadow.
  template <class Tell>
  void tell_policies(const Tell& tell_one) {
    guarded([&] { tell_one(*policy_); });
    if (resting_) guarded([&] { tell_one(*resting_); });
    if (shadow_) shadow_->hear(tell_one);
  }
  // A policy that throws is counted, and what it was to do is left undone.
  template <class Call>
  void guarded(const Call& call) {
    try {
      call();
    } catch (const std::exception&) {
      ++broken_calls_;
    }
  }
  void brief(Policy& policy, std::span<const Candidate> waiting) const;
  void collect_waiting();
  void place_collected();
  void tell(const RouterEvent& event) {
    if (listener_ != nullptr) listener_->heard(now_, event);
  }

  [[nodiscard]] FleetView fleet_view() const { return {ledger_.groups(), queued_}; }
  [[nodiscard]] std::optional<SubmitError> obstacle(const Request& request) const;
  [[nodiscard]] std::optional<SubmitError> without_taker(const Request& request) const;
  [[nodiscard]] Candidate candidate_of(const Request& request) const;
  void enter(const Request& request);
  void place(const Candidate& candidate);
  void rebind();
  void take_queue(WorkerId worker);
  void count_queued(WorkerId worker, const Candidate& candidate, std::int64_t sign);

  void begin_round();
  void mark_late();
  void serve(GroupId group, bool explain);
  void place_late(GroupId group, const PooledPolicy& policy);
  void keep_worker_for(GroupId group, const Candidate& candidate);
  [[nodiscard]] GroupView without_kept(GroupId group);
  void decide(GroupId group, bool explain);
  void ask_shadow(const GroupView& group);
  void decide_from_pool(GroupId group, PooledPolicy& policy, bool explain);
  void serve_queues(GroupId group, const ImmediatePolicy& policy, bool explain);
  bool admit(GroupId group, const Candidate& candidate, const Choice& choice);
  [[nodiscard]] std::optional<RunnerUp> next_best(const ImmediatePolicy& policy, const GroupView& group,
                                                  std::size_t worker, const Candidate& candidate) const;

  // A request that entered, as long as it may be the one that waits longest.
  struct Entered {
    RequestId request;
    std::uint64_t serial;
    std::chrono::nanoseconds at;
  };
  // The worker that last took nothing but the late request of that number; whether it does so now.
  struct Kept {
    WorkerId worker;
    std::uint64_t serial = 0;
    bool now = false;
  };

  RouterListener* listener_;
  Ledger ledger_;
  Eligibility eligibility_;
  Patience patience_;
  std::chrono::nanoseconds now_{0};
  std::deque<Entered> entered_;  // in order
  std::vector<Kept> kept_;       // by GroupId
  Pool pool_;
  std::vector<Pool> queues_;         // by WorkerId
  std::vector<Queued> queued_;       // their totals
  IdMap waiting_;                    // request -> WorkerId value of its queue, or kInPool, or kParked
  std::unique_ptr<Policy> policy_;   // decides
  std::unique_ptr<Policy> resting_;  // the chosen one while another decides
  std::unique_ptr<StepShadow> shadow_;
  Random random_;
  std::uint64_t next_serial_ = 0;
  std::uint64_t refused_choices_ = 0;
  std::uint64_t broken_calls_ = 0;

  // A round's scratch; the memory stays.
  std::vector<Admission> admissions_;
  std::vector<Choice> choices_;
  std::vector<std::size_t> taken_;
  std::vector<Candidate> moving_;
  std::vector<Candidate> seen_;  // by the shadow
  std::vector<std::uint8_t> eligible_;
  std::vector<GroupId> visits_;
};

}  // namespace balanceroute
