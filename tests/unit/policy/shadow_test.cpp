// What another policy would have done: in one step, and in a world of its own.
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "policy/shadow/step_shadow.hpp"
#include "policy/shadow/world_shadow.hpp"

namespace balanceroute {
namespace {

using namespace std::chrono_literals;

// Gives everything to the first worker that has room.
class FirstWorker final : public PooledPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "first_worker"; }
  void decide(const RoundInput& input, Random&, std::vector<Choice>& choices) override {
    std::vector<std::int32_t> free(input.group.free_slots.begin(), input.group.free_slots.end());
    for (std::size_t i = 0; i < input.pool.size(); ++i) {
      for (std::size_t worker = 0; worker < free.size(); ++worker) {
        if (input.group.eligible[worker] == 0 || free[worker] < 1) continue;
        --free[worker];
        choices.push_back({.candidate = i, .worker = worker, .stage = Stage::single});
        break;
      }
    }
  }
  [[nodiscard]] double score(const FleetView&, GroupId, std::size_t, const Candidate&) const override { return 0; }
  [[nodiscard]] std::string_view score_meaning() const override { return "nothing"; }
};

std::unique_ptr<Policy> policy(const std::string& name) {
  if (name == "first_worker") return std::make_unique<FirstWorker>();
  return make_policy({.name = name}).value();
}

Request request(std::uint64_t id, std::int64_t prompt) {
  return {.id = RequestId{id}, .prompt = Tokens{prompt}};
}

class StepShadowTest : public testing::TestWithParam<const char*> {
 protected:
  void start(const std::string& decides, const std::string& shadow) {
    router = std::make_unique<Router>("fleet", policy(decides), 1);
    group = router->add_group("group");
    for (std::int32_t rank = 0; rank < 2; ++rank) router->add_worker(group, "http://host", rank, 4).value();
    router->set_shadow(std::make_unique<StepShadow>(policy(shadow), 2));
    running.push_back(router->adopt(WorkerId{0}, request(1, 100)).value());
  }
  void place(std::uint64_t id, std::int64_t prompt) {
    ASSERT_TRUE(router->submit(request(id, prompt)));
    for (Admission& admission : router->round(group)) running.push_back(std::move(admission.lease));
  }

  std::unique_ptr<Router> router;
  GroupId group;
  std::vector<Lease> running;
};

// Law: the regret of a round is the imbalance that the policy leaves, less that which the shadow would have left from
// the same state: loads 110, 0 against 100, 10.
TEST_P(StepShadowTest, RegretIsTheDifferenceInImbalance) {
  start("first_worker", GetParam());
  place(2, 10);
  EXPECT_EQ(router->shadow()->regret().rounds, 1U);
  EXPECT_EQ(router->shadow()->regret().worse, 1U);
  EXPECT_EQ(router->shadow()->regret().regret, Tokens{110 - 90});
  EXPECT_EQ(router->ledger().view(group).loads[0], Tokens{110}) << "the shadow must place nothing";
  // Each round begins from what is, not from what the shadow would have: 120, 0 against 110, 10.
  place(3, 10);
  EXPECT_EQ(router->shadow()->regret().regret, Tokens{20 + 120 - 100});
}

INSTANTIATE_TEST_SUITE_P(BothKinds, StepShadowTest, testing::Values("least_tokens", "br_0"));

TEST_F(StepShadowTest, OneThatDecidesTheSameRegretsNothing) {
  start("br_0", "br_0");
  for (std::uint64_t id = 2; id < 6; ++id) place(id, 10);
  EXPECT_EQ(router->shadow()->regret().rounds, 4U);
  EXPECT_EQ(router->shadow()->regret().regret, Tokens{0});
}

TEST_F(StepShadowTest, ItMayBeTheWorseOne) {
  start("least_tokens", "first_worker");
  place(2, 10);
  EXPECT_EQ(router->shadow()->regret().worse, 0U);
  EXPECT_EQ(router->shadow()->regret().regret, Tokens{-20});
}

// A pooled policy that breaks off whenever it is asked, or told of an admission.
class Breaks final : public PooledPolicy {
 public:
  explicit Breaks(bool when_asked) : when_asked_{when_asked} {}
  [[nodiscard]] std::string_view name() const override { return "breaks"; }
  void decide(const RoundInput&, Random&, std::vector<Choice>& choices) override {
    choices.push_back({.candidate = 0, .worker = 0, .stage = Stage::single});
    if (when_asked_) throw std::runtime_error{"a broken promise"};
  }
  void admitted(const Request&, GroupId, WorkerId) override {
    if (!when_asked_) throw std::runtime_error{"a broken promise"};
  }
  [[nodiscard]] double score(const FleetView&, GroupId, std::size_t, const Candidate&) const override { return 0; }
  [[nodiscard]] std::string_view score_meaning() const override { return "nothing"; }

 private:
  bool when_asked_;
};

// Law: a shadow that throws is asked no more, its owner is told once, and the request is placed as without it.
TEST_F(StepShadowTest, OneThatThrowsIsOver) {
  for (const bool when_asked : {true, false}) {
    running.clear();
    start("least_tokens", "br_0");
    std::vector<std::string> told;
    running.clear();
    router->set_shadow(std::make_unique<StepShadow>(
        std::make_unique<Breaks>(when_asked), 2,
        ShadowLimits{.stopped = [&told](std::string_view why) { told.emplace_back(why); }}));
    for (std::uint64_t id = 2; id < 5; ++id) place(id, 10);
    EXPECT_EQ(running.size(), 3U);
    EXPECT_FALSE(router->shadow()->guard().is_on());
    EXPECT_EQ(told, std::vector<std::string>{"it failed: a broken promise"});
    EXPECT_EQ(router->broken_calls(), 0U) << "that is no fault of the policy that decides";
  }
}

// Law: where it would have put a request is known after the round, and forgotten with the next.
TEST_F(StepShadowTest, ChoiceIsOfTheLastRound) {
  start("first_worker", "least_tokens");
  place(2, 10);
  EXPECT_EQ(router->shadow()->choice(RequestId{2}), WorkerId{1});
  EXPECT_EQ(router->shadow()->choice(RequestId{1}), std::nullopt);
  place(3, 10);
  EXPECT_EQ(router->shadow()->choice(RequestId{2}), std::nullopt);
}

// Takes a time of its own for each round.
class ShadowGuardTest : public testing::Test {
 protected:
  void round(std::chrono::nanoseconds length) {
    guard.run_round([&] { now += length; });
  }
  std::chrono::nanoseconds now{0};
  ShadowGuard guard{{.now = [this] { return now; }, .slow_round = 5ms}};
};

// Law: three slow rounds within a minute are too many, three over a longer time are not; one of just the limit is not
// slow.
TEST_F(ShadowGuardTest, EndsWithTheThirdSlowRoundOfAMinute) {
  for (int i = 0; i < 10; ++i) {
    round(6ms);
    now += 30s;
    round(5ms);
    EXPECT_TRUE(guard.is_on()) << i;
  }
  round(6ms);
  EXPECT_TRUE(guard.is_on());
  round(6ms);
  EXPECT_FALSE(guard.is_on());
  EXPECT_EQ(guard.why(), "three of its rounds within a minute were slow");
}

// Law: the time of its rounds is told, and after its end nothing is run.
TEST_F(ShadowGuardTest, TellsItsTimeAndRunsNothingAfterItsEnd) {
  round(2ms);
  round(1ms);
  EXPECT_EQ(guard.spent(), 3ms);
  guard.run([] { throw std::runtime_error{"over"}; });
  EXPECT_FALSE(guard.is_on());
  round(1ms);
  EXPECT_EQ(guard.spent(), 3ms);
}

class WorldShadowTest : public testing::Test {
 protected:
  WorldShadowTest() {
    world.watch(live);
    group = live.add_group("group");
    for (std::int32_t rank = 0; rank < 2; ++rank) live.add_worker(group, "http://host", rank, 2).value();
  }
  Lease place(std::uint64_t id) {
    EXPECT_TRUE(live.submit(request(id, 10)));
    return std::move(live.round_all().front().lease);
  }
  Tokens load_there(std::uint32_t worker) { return world.router().ledger().worker(WorkerId{worker}).load; }

  WorldShadow world{"fleet", policy("least_tokens"), 2, {}};
  Router live{"fleet", policy("first_worker"), 1, {.listener = &world}};
  GroupId group;
};

// Law: the same requests are in both worlds, each where its policy has put it, and grow with the same steps.
TEST_F(WorldShadowTest, ItsPolicyPlacesTheSameRequests) {
  Lease a = place(1);
  Lease b = place(2);
  a.started();
  b.started();
  EXPECT_EQ(live.ledger().view(group).loads[0], Tokens{20});
  EXPECT_EQ(load_there(0), Tokens{10});
  EXPECT_EQ(load_there(1), Tokens{10});
  live.advance(group, Steps{1});
  live.advance(group, Steps{3});
  EXPECT_EQ(load_there(0), Tokens{13});  // it began with the first of those steps
  EXPECT_EQ(world.there()[0].load_idle_fraction(), 0);
  EXPECT_EQ(world.here()[0].load_idle_fraction(), 0.5);
}

// Law: a request lives in the shadow's world as long as it turns out to, and one that is given up ends in both at once.
TEST_F(WorldShadowTest, LengthsAreThoseThatTurnOut) {
  Lease ends = place(1);
  Lease breaks = place(2);
  ends.started();
  live.advance(group, Steps{3});
  ends.finish(Tokens{3});
  EXPECT_EQ(load_there(0) + load_there(1), Tokens{20});  // three tokens are due there after three more steps
  breaks.release();
  EXPECT_EQ(load_there(0) + load_there(1), Tokens{10});
  live.advance(group, Steps{2});
  EXPECT_EQ(load_there(0) + load_there(1), Tokens{12});
  live.advance(group, Steps{1});
  EXPECT_EQ(world.router().ledger().live_leases(), 0U);
}

// Law: membership is that of the live fleet, and what waits is withdrawn with its client.
TEST_F(WorldShadowTest, FollowsMembershipAndClients) {
  ASSERT_TRUE(live.drain(WorkerId{0}));
  std::vector<Lease> running;
  for (std::uint64_t id = 1; id <= 2; ++id) running.push_back(place(id));
  EXPECT_EQ(load_there(0), Tokens{0});
  EXPECT_EQ(load_there(1), Tokens{20});
  ASSERT_TRUE(live.submit(request(3, 10)));
  EXPECT_EQ(world.router().waiting(), 1U);
  live.withdraw(RequestId{3});
  EXPECT_EQ(world.router().waiting(), 0U);
  ASSERT_TRUE(live.declare_dead(WorkerId{1}));
  EXPECT_EQ(world.router().ledger().live_leases(), 0U);
}

// Law: what the shadow's worker loses is lost there, whatever becomes of it here, and nothing of it stays behind.
TEST_F(WorldShadowTest, WhatIsLostThereIsForgottenWithItsEnd) {
  Lease first = place(1);
  Lease second = place(2);  // here both on worker 0, there one on each
  const RequestId lost{world.choice(RequestId{1}) == WorkerId{1} ? 1U : 2U};
  ASSERT_EQ(world.choice(lost), WorkerId{1});
  ASSERT_TRUE(live.restart(WorkerId{1}));
  EXPECT_EQ(world.choice(lost), std::nullopt);
  EXPECT_EQ(live.ledger().live_leases(), 2U);
  for (Lease* lease : {&first, &second}) lease->started();
  live.advance(group, Steps{1});
  second.finish(Tokens{1});
  first.finish(Tokens{1});
  live.advance(group, Steps{1});
  EXPECT_EQ(world.router().ledger().live_leases(), 0U);
  EXPECT_EQ(world.kept(), 0U);
}

// Law: a world whose policy throws is over, and the live one goes on.
TEST(WorldShadowGuard, OneThatThrowsIsOver) {
  WorldShadow world{"fleet", std::make_unique<Breaks>(true), 2, {}};
  Router live{"fleet", policy("first_worker"), 1, {.listener = &world}};
  world.watch(live);
  const GroupId group = live.add_group("group");
  live.add_worker(group, "http://host", 0, 2).value();
  ASSERT_TRUE(live.submit(request(1, 10)));
  EXPECT_EQ(live.round_all().size(), 1U);
  EXPECT_EQ(live.broken_calls(), 0U);
  EXPECT_EQ(world.guard().why(), "it failed: its policy broke off");
}

}  // namespace
}  // namespace balanceroute
