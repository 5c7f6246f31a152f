#include "policy/router.hpp"

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <vector>

#include "policy/registry.hpp"

namespace balanceroute {
namespace {

std::unique_ptr<Policy> policy_named(std::string name) {
  return make_policy({.name = std::move(name), .greedy_threshold = 7}).value();
}

// A router of one fleet whose leases are kept by request.
class Fleet {
 public:
  explicit Fleet(const std::string& policy, const std::vector<std::int32_t>& slots)
      : router{"fleet", policy_named(policy), 1} {
    group = add_group(slots);
  }

  GroupId add_group(const std::vector<std::int32_t>& slots) {
    const GroupId added = router.add_group("group" + std::to_string(router.ledger().groups().size()));
    for (const std::int32_t count : slots) {
      router.add_worker(added, "http://host", static_cast<std::int32_t>(router.ledger().worker_count()), count).value();
    }
    return added;
  }
  void submit(std::uint64_t id, std::int64_t prompt, std::int32_t sequences = 1) {
    ASSERT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{prompt}, .sequences = sequences}));
  }
  // Runs a round and keeps its leases; the worker each request went to.
  std::map<std::uint64_t, std::uint32_t> round(GroupId which) {
    std::map<std::uint64_t, std::uint32_t> placed;
    for (Admission& admission : router.round(which)) {
      placed[admission.request.id.value()] = admission.worker.value();
      leases[admission.request.id.value()] = std::move(admission.lease);
    }
    return placed;
  }
  std::map<std::uint64_t, std::uint32_t> round() { return round(group); }
  Tokens load(std::uint32_t worker) const { return router.ledger().worker(WorkerId{worker}).load; }

  Router router;
  GroupId group;
  std::map<std::uint64_t, Lease> leases;
};

using Placed = std::map<std::uint64_t, std::uint32_t>;

// Law: every policy fills free slots while requests wait, and gives everything back in the end.
TEST(Router, EveryPolicyIsWorkConservingAndDrainsToZero) {
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    Fleet fleet{std::string{name}, {2, 2, 2}};
    for (std::uint64_t id = 0; id < 8; ++id) fleet.submit(id, 100);
    EXPECT_EQ(fleet.round().size(), 6U);
    EXPECT_EQ(fleet.router.waiting(), 2U);
    fleet.leases.clear();
    EXPECT_EQ(fleet.round().size(), 2U);
    fleet.leases.clear();
    EXPECT_EQ(fleet.router.waiting(), 0U);
    EXPECT_EQ(fleet.router.ledger().live_leases(), 0U);
    EXPECT_EQ(total_load(fleet.router.ledger().view(fleet.group).loads), Tokens{0});
    EXPECT_EQ(fleet.router.refused_choices(), 0U);
  }
}

// Law: what a round admitted and nobody took is given back when the next one begins.
TEST(Router, UntakenLeasesAreGivenBack) {
  Fleet fleet{"br_0", {1}};
  fleet.submit(1, 10);
  EXPECT_EQ(fleet.router.round(fleet.group).size(), 1U);
  EXPECT_EQ(fleet.load(0), Tokens{10});
  EXPECT_EQ(fleet.router.round(fleet.group).size(), 0U);
  EXPECT_EQ(fleet.load(0), Tokens{0});
}

TEST(Router, RefusesWhatItCannotPlace) {
  Router router{"fleet", policy_named("br_0"), 1};
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::NoWorkerReady);
  const GroupId group = router.add_group("group");
  const WorkerId worker = router.add_worker(group, "http://host", 0, 2).value();
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}, .sequences = 3}).error(),
            SubmitError::TooManySequences);
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{-1}}).error(), SubmitError::NegativeTokens);
  ASSERT_TRUE(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}));
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::AlreadyKnown);
  const Lease lease = std::move(router.round(group)[0].lease);
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::AlreadyKnown);
  ASSERT_TRUE(router.drain(worker));
  EXPECT_EQ(router.submit({.id = RequestId{2}, .prompt = Tokens{1}}).error(), SubmitError::NoWorkerReady);
}

// Law: what no worker could hold even if it were idle is refused; what one could hold waits its turn, and under an
// immediate policy nobody in the same queue overtakes it.
TEST(Router, QueueHeadsWaitForKvSpace) {
  Router router{"fleet", policy_named("least_tokens"), 1, {.books = {.load_model = {}, .kv_block = Tokens{16}}}};
  const GroupId group = router.add_group("group");
  router.add_worker(group, "http://host", 0, 8, {.capacity = Tokens{1000}, .reserve = Tokens{100}}).value();
  const auto submit = [&](std::uint64_t id, std::int64_t prompt, std::int32_t sequences = 1) {
    return router.submit({.id = RequestId{id}, .prompt = Tokens{prompt}, .sequences = sequences});
  };
  EXPECT_EQ(submit(1, 897).error(), SubmitError::ExceedsKvSpace);
  EXPECT_EQ(submit(1, 449, 2).error(), SubmitError::ExceedsKvSpace);
  ASSERT_TRUE(submit(1, 500) && submit(2, 390) && submit(3, 100));
  Lease first = std::move(router.round(group)[0].lease);  // takes 512 of 900
  EXPECT_EQ(router.waiting(), 2U);                        // 400 do not fit, and what would fit is behind them
  first.release();
  EXPECT_EQ(router.round(group).size(), 2U);
  EXPECT_EQ(router.refused_choices(), 0U);
}

// Law: a request that waits can be taken back, from the pool and from a queue; one that has a worker cannot.
TEST(Router, WithdrawTakesBackWhatWaits) {
  for (const std::string policy : {"br_0", "least_tokens"}) {
    SCOPED_TRACE(policy);
    Fleet fleet{policy, {1}};
    for (std::uint64_t id = 0; id < 3; ++id) fleet.submit(id, 10);
    EXPECT_TRUE(fleet.router.withdraw(RequestId{1}));
    EXPECT_FALSE(fleet.router.withdraw(RequestId{1}));
    EXPECT_EQ(fleet.round().size(), 1U);
    EXPECT_FALSE(fleet.router.withdraw(RequestId{0}));
    EXPECT_EQ(fleet.router.waiting(), 1U);
    fleet.leases.clear();
    EXPECT_EQ(fleet.round(), (Placed{{2, 0}}));
  }
}

// Law: a queue counts exactly what waits in it: not what was withdrawn, nor what was admitted.
TEST(Router, QueueTotalsFollowTheQueue) {
  Fleet fleet{"round_robin", {2}};
  fleet.submit(1, 500, 2);
  fleet.submit(2, 70);
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).load, Tokens{1070});
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).sequences, 3);
  fleet.round();
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).load, Tokens{70});
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).sequences, 1);
  ASSERT_TRUE(fleet.router.withdraw(RequestId{2}));
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).load, Tokens{0});
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).sequences, 0);
}

// Law: under an immediate policy a request stays with its worker: it waits there though another is free.
TEST(Router, BoundRequestsWaitForTheirWorker) {
  Fleet fleet{"round_robin", {1, 1}};
  for (std::uint64_t id = 0; id < 4; ++id) fleet.submit(id, 10);
  EXPECT_EQ(fleet.round(), (Placed{{0, 0}, {1, 1}}));
  fleet.leases.erase(1);
  EXPECT_EQ(fleet.round(), (Placed{{3, 1}}));
  fleet.leases.erase(3);
  EXPECT_TRUE(fleet.round().empty());  // 2 is bound to worker 0
  fleet.leases.erase(0);
  EXPECT_EQ(fleet.round(), (Placed{{2, 0}}));
}

// Law: a queue is served in order: nobody overtakes a wide request at its front.
TEST(Router, QueueIsServedInOrder) {
  Fleet fleet{"round_robin", {2}};
  fleet.submit(0, 10);
  fleet.submit(1, 10, 2);
  fleet.submit(2, 10);
  EXPECT_EQ(fleet.round(), (Placed{{0, 0}}));
  fleet.leases.clear();
  EXPECT_EQ(fleet.round(), (Placed{{1, 0}}));
}

// Law: what is queued at a worker that drains or dies is bound anew, in order of arrival.
TEST(Router, QueueOfALeavingWorkerIsBoundAnew) {
  Fleet fleet{"round_robin", {1, 1, 1}};
  for (std::uint64_t id = 0; id < 6; ++id) fleet.submit(id, 10);
  ASSERT_TRUE(fleet.router.drain(WorkerId{0}));
  EXPECT_TRUE(fleet.router.queued_at(WorkerId{0}).empty());
  EXPECT_EQ(fleet.router.waiting(), 6U);
  std::vector<std::uint64_t> order;
  for (const Candidate& candidate : fleet.router.queued_at(WorkerId{1})) order.push_back(candidate.request.id.value());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 4}));
}

std::vector<std::uint64_t> ids_of(std::span<const Candidate> row) {
  std::vector<std::uint64_t> ids;
  for (const Candidate& candidate : row) ids.push_back(candidate.request.id.value());
  return ids;
}

// Law: what several queues held is bound anew in order of arrival, not queue by queue: when a group is suspect, and
// when the policy is exchanged.
TEST(Router, SeveralQueuesAreBoundAnewInOneOrder) {
  Fleet fleet{"round_robin", {1, 1}};
  fleet.add_group({1, 1});
  for (std::uint64_t id = 0; id < 8; ++id) fleet.submit(id, 10);
  fleet.router.set_policy(policy_named("round_robin"));
  EXPECT_EQ(ids_of(fleet.router.queued_at(WorkerId{0})), (std::vector<std::uint64_t>{0, 4}));
  ASSERT_TRUE(fleet.router.declare_dead(WorkerId{0}));  // 0, 1, 4, 5 move
  EXPECT_EQ(ids_of(fleet.router.queued_at(WorkerId{2})), (std::vector<std::uint64_t>{0, 2, 4, 6}));
  EXPECT_EQ(ids_of(fleet.router.queued_at(WorkerId{3})), (std::vector<std::uint64_t>{1, 3, 5, 7}));
}

// Law: while no worker takes admissions requests wait unbound, and are bound when one does.
TEST(Router, UnboundRequestsWaitInThePool) {
  Fleet fleet{"least_tokens", {2, 2}};
  fleet.submit(0, 10);
  fleet.submit(1, 20);
  ASSERT_TRUE(fleet.router.declare_dead(WorkerId{0}));  // its group is suspect
  EXPECT_EQ(fleet.router.pooled().size(), 2U);
  EXPECT_TRUE(fleet.round().empty());
  ASSERT_TRUE(fleet.router.restart(WorkerId{0}));
  EXPECT_TRUE(fleet.router.pooled().empty());
  EXPECT_EQ(fleet.round().size(), 2U);
}

// Law: a new worker is offered what waits unbound.
TEST(Router, NewWorkerServesWhatWaitsUnbound) {
  Fleet fleet{"least_tokens", {2}};
  fleet.submit(0, 10);
  ASSERT_TRUE(fleet.router.drain(WorkerId{0}));
  EXPECT_EQ(fleet.router.pooled().size(), 1U);
  fleet.router.add_worker(fleet.group, "http://host", 9, 1).value();
  EXPECT_EQ(fleet.round(), (Placed{{0, 1}}));
}

// Law: a restarted worker's queue keeps its place, its leases are void.
TEST(Router, RestartKeepsTheQueue) {
  Fleet fleet{"round_robin", {1, 1}};
  for (std::uint64_t id = 0; id < 4; ++id) fleet.submit(id, 10);
  fleet.round();
  ASSERT_TRUE(fleet.router.restart(WorkerId{0}));
  EXPECT_FALSE(fleet.leases[0].live());
  EXPECT_EQ(fleet.round(), (Placed{{2, 0}}));
  EXPECT_EQ(fleet.load(0), Tokens{10});
}

// Law: when the policy is exchanged what waits moves over, in order of arrival, both ways.
TEST(Router, PolicyMayBeExchanged) {
  Fleet fleet{"round_robin", {1, 1}};
  for (std::uint64_t id = 0; id < 4; ++id) fleet.submit(id, 10);
  fleet.router.set_policy(policy_named("br_0"));
  EXPECT_EQ(fleet.router.policy().name(), "br_0");
  std::vector<std::uint64_t> order;
  for (const Candidate& candidate : fleet.router.pooled()) order.push_back(candidate.request.id.value());
  EXPECT_EQ(order, (std::vector<std::uint64_t>{0, 1, 2, 3}));
  fleet.round();
  fleet.router.set_policy(policy_named("round_robin"));
  EXPECT_TRUE(fleet.router.pooled().empty());
  EXPECT_EQ(fleet.router.waiting(), 2U);
  EXPECT_EQ(fleet.router.queued_at(WorkerId{0}).size(), 1U);
}

// A group where a request of two sequences has become late while every worker was full, and a narrow one has come
// since. The higher a worker's number, the less its requests read.
class WideLateRequest : public testing::Test {
 protected:
  static constexpr std::uint64_t kWide = 100;
  static constexpr std::uint64_t kNarrow = 101;

  void fill(const std::vector<std::int32_t>& slots) {
    for (const std::int32_t count : slots) {
      router.add_worker(group, "http://host", static_cast<std::int32_t>(router.ledger().worker_count()), count).value();
    }
    for (std::uint32_t worker = 0; worker < slots.size(); ++worker) {
      for (std::int32_t slot = 0; slot < slots[worker]; ++slot) {
        running[worker].push_back(
            router.adopt(WorkerId{worker}, {.id = RequestId{next++}, .prompt = Tokens{100 - worker}}).value());
      }
    }
    ASSERT_TRUE(router.submit({.id = RequestId{kWide}, .prompt = Tokens{10}, .sequences = 2}));
    router.set_now(std::chrono::milliseconds{1500});
    ASSERT_TRUE(router.submit({.id = RequestId{kNarrow}, .prompt = Tokens{10}}));
  }
  void end_one(std::uint32_t worker) { running[worker].pop_back(); }
  Placed round() {
    Placed placed;
    for (Admission& admission : router.round(group)) {
      placed[admission.request.id.value()] = admission.worker.value();
      kept.push_back(std::move(admission.lease));
    }
    return placed;
  }

  Router router{"fleet", policy_named("br_0"), 1, {.books = {}, .max_wait = std::chrono::seconds{1}}};
  GroupId group = router.add_group("group");
  std::map<std::uint32_t, std::vector<Lease>> running;
  std::vector<Lease> kept;
  std::uint64_t next = 0;
};

// Law: a worker is kept for it, the one with most free slots, and goes on being kept though another one seems nearer
// later; the others serve who waits behind.
TEST_F(WideLateRequest, HasOneWorkerKeptForIt) {
  fill({2, 2});
  end_one(0);
  EXPECT_EQ(round(), (Placed{}));  // the narrow one would fit, and does not get it
  end_one(1);                      // as many slots free, and less load
  EXPECT_EQ(round(), (Placed{{kNarrow, 1}}));
  end_one(0);
  EXPECT_EQ(round(), (Placed{{kWide, 0}}));
}

// Law: the kept worker is one that could take it if it were idle, and that takes admissions.
TEST_F(WideLateRequest, HasNoWorkerKeptThatCannotTakeIt) {
  fill({2, 1});
  end_one(0);
  end_one(1);  // too small
  EXPECT_EQ(round(), (Placed{{kNarrow, 1}}));
  end_one(0);
  EXPECT_EQ(round(), (Placed{{kWide, 0}}));
}

TEST_F(WideLateRequest, HasNoWorkerKeptThatTakesNothing) {
  fill({2, 2});
  ASSERT_TRUE(router.drain(WorkerId{1}));
  end_one(0);
  end_one(1);
  end_one(1);  // room that nobody may use
  EXPECT_EQ(round(), (Placed{}));
  end_one(0);
  EXPECT_EQ(round(), (Placed{{kWide, 0}}));
}

// Law: once it has been placed no worker is kept any more.
TEST_F(WideLateRequest, FreesTheWorkerThatWasKept) {
  fill({2, 2});
  end_one(0);
  EXPECT_EQ(round(), (Placed{}));
  EXPECT_TRUE(router.withdraw(RequestId{kWide}));
  EXPECT_EQ(round(), (Placed{{kNarrow, 0}}));
}

// One group of one worker with one slot, under br_0; requests are late after a second.
class OneSlot : public testing::Test {
 protected:
  void set_up(std::optional<std::chrono::nanoseconds> max_wait) {
    router.emplace("fleet", policy_named("br_0"), 1, RouterSettings{.books = {}, .max_wait = max_wait});
    group = router->add_group("group");
    router->add_worker(group, "http://host", 0, 1).value();
  }
  void submit(std::uint64_t id, TenantId tenant = kDefaultTenant) {
    ASSERT_TRUE(router->submit({.id = RequestId{id}, .prompt = Tokens{10}, .tenant = tenant}));
  }
  // Ends what runs and runs a round: the rule by which the next one is placed.
  Stage next() {
    running.release();
    const auto admissions = router->round(group);
    if (admissions.size() != 1) return Stage::bound;
    running = std::move(admissions.front().lease);
    return admissions.front().stage;
  }
  [[nodiscard]] std::vector<std::uint64_t> pooled() const {
    std::vector<std::uint64_t> ids;
    for (const Candidate& candidate : router->pooled()) ids.push_back(candidate.request.id.value());
    return ids;
  }

  std::optional<Router> router;
  GroupId group;
  Lease running;
};

// Law: a request is late when it has waited for longer than it may, and not before.
TEST_F(OneSlot, ARequestIsLateOnceItHasWaitedLonger) {
  set_up(std::chrono::seconds{1});
  submit(1);
  submit(2);
  router->set_now(std::chrono::seconds{1});
  EXPECT_EQ(next(), Stage::work_conserving);
  router->set_now(std::chrono::seconds{1} + std::chrono::nanoseconds{1});
  EXPECT_EQ(next(), Stage::late);
}

// Law: one that left and came again has waited since it came again.
TEST_F(OneSlot, WaitingBeginsAnewWithARequest) {
  set_up(std::chrono::seconds{1});
  submit(1);
  ASSERT_TRUE(router->withdraw(RequestId{1}));
  router->set_now(std::chrono::milliseconds{900});
  submit(1);
  router->set_now(std::chrono::milliseconds{1500});
  EXPECT_EQ(next(), Stage::work_conserving);
}

// Law: left to itself the router is the more patient the slower requests are placed.
TEST_F(OneSlot, PatienceGoesByTheRateOfAdmissions) {
  set_up(std::nullopt);
  for (std::uint64_t id = 0; id < 12; ++id) submit(id);
  EXPECT_EQ(next(), Stage::work_conserving);
  router->set_now(std::chrono::seconds{11});  // 11 wait, one a 11 s is placed
  EXPECT_EQ(next(), Stage::work_conserving);
}

// Law: what is parked does not wait for a worker, and makes nobody patient.
TEST_F(OneSlot, PatienceDoesNotCountTheParked) {
  set_up(std::nullopt);
  const TenantId tenant = router->add_tenant({.quota = 1});
  for (std::uint64_t id = 0; id < 21; ++id) submit(id);
  for (int served = 0; served < 20; ++served) next();
  for (std::uint64_t id = 100; id < 200; ++id) submit(id, tenant);
  router->set_now(std::chrono::seconds{11});  // 2 wait, 20 were placed in 11 s
  EXPECT_EQ(next(), Stage::late);
}

// Law: the router tells the shares who was served: a tenant that comes later takes turns with the others at once, and
// is not paid for the time before.
TEST_F(OneSlot, WhoComesLaterTakesTurns) {
  set_up(std::nullopt);
  const TenantId late = router->add_tenant({});
  for (std::uint64_t id = 0; id < 5; ++id) submit(id);
  for (int served = 0; served < 3; ++served) next();
  for (std::uint64_t id = 10; id < 13; ++id) submit(id, late);
  EXPECT_EQ(pooled(), (std::vector<std::uint64_t>{10, 3, 11, 4, 12}));
}

// Law: a quota counts what runs, whoever brought it there, until it ends, sequence by sequence.
TEST(Router, QuotasCountWhatRuns) {
  Router router{"fleet", policy_named("br_0"), 1};
  const GroupId group = router.add_group("group");
  const WorkerId worker = router.add_worker(group, "http://host", 0, 8).value();
  const TenantId tenant = router.add_tenant({.quota = 2});
  const auto request = [&](std::uint64_t id, std::int32_t sequences) {
    return Request{.id = RequestId{id}, .prompt = Tokens{10}, .sequences = sequences, .tenant = tenant};
  };
  Lease adopted = router.adopt(worker, request(1, 2)).value();
  ASSERT_TRUE(router.submit(request(2, 1)));
  ASSERT_TRUE(router.submit(request(3, 1)));
  EXPECT_TRUE(router.round(group).empty());
  EXPECT_EQ(router.parked(), 2U);
  adopted.finish_one(Tokens{5});
  Lease second = std::move(router.round(group).front().lease);
  EXPECT_EQ(router.parked(), 1U);
  second.finish(Tokens{1});
  EXPECT_EQ(router.round(group).front().request.id, RequestId{3});
}

// Law: a policy that takes over finds quotas as they were: what runs and what waits counts on, what is parked stays so.
TEST(Router, QuotasOutliveAPolicy) {
  Router router{"fleet", policy_named("br_0"), 1};
  const GroupId group = router.add_group("group");
  ASSERT_TRUE(router.add_worker(group, "http://host", 0, 8));
  const TenantId tenant = router.add_tenant({.quota = 2});
  for (std::uint64_t id = 1; id <= 4; ++id) {
    ASSERT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{10}, .tenant = tenant}));
  }
  std::vector<Lease> running;
  for (Admission& admission : router.round(group)) running.push_back(std::move(admission.lease));
  ASSERT_EQ(running.size(), 2U);
  router.set_policy(policy_named("join_shortest_queue"));
  EXPECT_EQ(router.standing(tenant).active, 2);
  EXPECT_EQ(router.parked(), 2U);
  EXPECT_TRUE(router.round(group).empty());
  running[0].finish(Tokens{1});
  EXPECT_EQ(router.round(group).front().request.id, RequestId{3});
}

// Law: terms that change while requests run hold for those that come.
TEST(Router, OtherTermsHoldForWhatComes) {
  Router router{"fleet", policy_named("br_0"), 1};
  const GroupId group = router.add_group("group");
  ASSERT_TRUE(router.add_worker(group, "http://host", 0, 8));
  const TenantId tenant = router.add_tenant({.quota = 1});
  for (std::uint64_t id = 1; id <= 2; ++id) {
    ASSERT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{10}, .tenant = tenant}));
  }
  Lease first = std::move(router.round(group).front().lease);
  EXPECT_TRUE(router.round(group).empty());
  router.set_terms(tenant, {.weight = 1, .quota = 2});
  EXPECT_EQ(router.round(group).front().request.id, RequestId{2});
}

// Law: a request that is taken back makes room in its tenant's quota.
TEST(Router, AWithdrawnRequestMakesRoomInItsQuota) {
  Fleet fleet{"br_0", {1}};
  const TenantId tenant = fleet.router.add_tenant({.quota = 1});
  for (std::uint64_t id = 1; id < 3; ++id) {
    ASSERT_TRUE(fleet.router.submit({.id = RequestId{id}, .prompt = Tokens{10}, .tenant = tenant}));
  }
  EXPECT_EQ(fleet.router.parked(), 1U);
  ASSERT_TRUE(fleet.router.withdraw(RequestId{1}));
  EXPECT_EQ(fleet.round(), (Placed{{2, 0}}));
}

// Law: of equally loaded workers a late request takes the first.
TEST(Router, LateTiesGoToTheFirstWorker) {
  Router router{"fleet", policy_named("br_0"), 1, {.books = {}, .max_wait = std::chrono::seconds{0}}};
  const GroupId group = router.add_group("group");
  for (std::int32_t rank = 0; rank < 2; ++rank) router.add_worker(group, "http://host", rank, 1).value();
  ASSERT_TRUE(router.submit({.id = RequestId{1}, .prompt = Tokens{10}}));
  router.set_now(std::chrono::seconds{1});
  const auto admissions = router.round(group);
  ASSERT_EQ(admissions.size(), 1U);
  EXPECT_EQ(admissions[0].stage, Stage::late);
  EXPECT_EQ(admissions[0].worker, WorkerId{0});
}

// Law: one pool serves all groups; the group with the least load per slot is asked first.
TEST(Router, LighterGroupIsVisitedFirst) {
  Fleet fleet{"br_0", {1, 1}};
  const GroupId second = fleet.add_group({4, 4});
  fleet.submit(0, 100);
  fleet.submit(1, 100);
  EXPECT_EQ(fleet.round().size(), 2U);
  fleet.leases.erase(1);  // the first group: 100 on 2 slots
  fleet.submit(2, 150);
  EXPECT_EQ(fleet.round(second).size(), 1U);  // the second: 150 on 8
  fleet.submit(3, 10);
  const auto admissions = fleet.router.round_all();
  ASSERT_EQ(admissions.size(), 1U);
  EXPECT_EQ(fleet.router.ledger().group_of(admissions[0].worker), second);
}

// Law: an explanation shows each worker as it stands, and the policy's score for the request.
TEST(Router, ExplainsWhatThePolicyThinks) {
  Fleet fleet{"br_0", {2, 1}};
  fleet.submit(0, 100);
  fleet.round();
  ASSERT_TRUE(fleet.router.drain(WorkerId{1}));
  const auto scores = fleet.router.explain(fleet.group, {.id = RequestId{9}, .prompt = Tokens{60}, .sequences = 2});
  ASSERT_EQ(scores.size(), 2U);
  EXPECT_EQ(scores[0].load, Tokens{100});
  EXPECT_EQ(scores[0].margin, Tokens{0});
  EXPECT_EQ(scores[0].score, 120 - 2 * 120);
  EXPECT_EQ(scores[0].free_slots, 1);
  EXPECT_FALSE(scores[1].eligible);
  EXPECT_EQ(scores[1].margin, Tokens{100});
  EXPECT_EQ(scores[1].score, 120 - 2 * 20);
}

// Law: a bound request is scored as if it were not yet there: its own load is no reason against its worker.
TEST(Router, ABoundRequestIsScoredWithoutItself) {
  Fleet fleet{"least_tokens", {2, 2}};
  fleet.submit(1, 100);
  fleet.submit(2, 300);
  const auto admissions = fleet.router.round(fleet.group);
  ASSERT_EQ(admissions.size(), 2U);
  for (const Admission& admission : admissions) EXPECT_EQ(admission.score, 0);
  EXPECT_EQ(fleet.router.queue_total(WorkerId{0}).load, Tokens{0});
  EXPECT_EQ(fleet.router.queue_total(WorkerId{1}).sequences, 0);
}

// Law: an admission says who took it and why; the runner-up when asked for.
TEST(Router, AdmissionsCarryTheirReasons) {
  for (const std::string policy : {"br_0", "least_tokens"}) {
    SCOPED_TRACE(policy);
    Fleet fleet{policy, {1, 1}};
    ASSERT_TRUE(fleet.router.restart(WorkerId{0}));
    fleet.submit(7, 40);
    const auto admissions = fleet.router.round(fleet.group, true);
    ASSERT_EQ(admissions.size(), 1U);
    const Admission& admission = admissions[0];
    EXPECT_EQ(admission.request.id, RequestId{7});
    EXPECT_EQ(admission.incarnation, admission.worker == WorkerId{0} ? 1U : 0U);
    EXPECT_EQ(admission.margin, Tokens{0});
    EXPECT_EQ(admission.stage, policy == "br_0" ? Stage::work_conserving : Stage::bound);
    ASSERT_TRUE(admission.runner_up);
    EXPECT_NE(admission.runner_up->worker, admission.worker);
  }
}

// Law: of equally good other workers the first is the runner-up.
TEST(Router, TiesForRunnerUpGoToTheFirst) {
  Fleet fleet{"least_tokens", {1, 1, 1}};
  fleet.submit(7, 40);
  const auto admissions = fleet.router.round(fleet.group, true);
  ASSERT_EQ(admissions.size(), 1U);
  EXPECT_EQ(admissions[0].runner_up->worker, admissions[0].worker == WorkerId{0} ? WorkerId{1} : WorkerId{0});
}

TEST(Router, UnknownWorkersAreRefused) {
  Fleet fleet{"br_0", {1}};
  EXPECT_EQ(fleet.router.drain(WorkerId{5}).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(fleet.router.resume(WorkerId{5}).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(fleet.router.restart(WorkerId{5}).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(fleet.router.declare_dead(WorkerId{}).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(fleet.router.remove(WorkerId{5}).error(), WorkerError::UnknownWorker);
  EXPECT_EQ(fleet.router.add_worker(GroupId{3}, "http://host", 0, 1).error(), WorkerError::UnknownGroup);
}

// Law: what runs already is taken in with its age, grows at once, and is not counted twice.
TEST(Router, AdoptsWhatRunsAlready) {
  Fleet fleet{"least_tokens", {2, 2}};
  auto adopted = fleet.router.adopt(WorkerId{0}, {.id = RequestId{1}, .prompt = Tokens{100}, .generated = Tokens{20}});
  ASSERT_TRUE(adopted);
  EXPECT_EQ(fleet.load(0), Tokens{120});
  fleet.router.advance(fleet.group, Steps{3});
  EXPECT_EQ(fleet.load(0), Tokens{123});
  fleet.submit(2, 10);
  EXPECT_EQ(fleet.round(), (Placed{{2, 1}}));  // the policy sees its load
  EXPECT_EQ(fleet.router.adopt(WorkerId{1}, {.id = RequestId{1}, .prompt = Tokens{5}}).error(),
            AdmitError::AlreadyAdmitted);
  adopted->release();
  EXPECT_EQ(fleet.load(0), Tokens{0});
}

// Law: a request that waits cannot also run.
TEST(Router, DoesNotAdoptWhatWaits) {
  Fleet fleet{"least_tokens", {1}};
  fleet.submit(1, 10);
  EXPECT_EQ(fleet.router.adopt(WorkerId{0}, {.id = RequestId{1}, .prompt = Tokens{10}}).error(),
            AdmitError::AlreadyAdmitted);
  EXPECT_EQ(fleet.router.waiting(), 1U);
}

}  // namespace
}  // namespace balanceroute
