// Laws of one simulated run, by scripts that can be followed by hand.
#include "sim/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "policy/registry.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::sim {
namespace {

using std::chrono::milliseconds;
using testing::ElementsAre;
using trace::TraceRequest;

TraceRequest request(std::int64_t at_ms, std::int64_t prompt, std::int64_t output) {
  return {.arrival = milliseconds{at_ms}, .prompt = Tokens{prompt}, .output = Tokens{output}};
}

// Steps of 10 ms and 1 ms a token.
Simulation simulation(const std::vector<TraceRequest>& script, const std::string& policy = "least_tokens",
                      std::size_t workers = 2, std::int32_t slots = 2, std::size_t groups = 1) {
  const Fleet fleet{
      .groups = groups, .workers = workers, .slots = slots, .step_time = {.fixed_ms = 10, .per_token_ms = 1}};
  const StreamSettings as_it_is{.arrivals = ArrivalLaw::trace, .rate_per_second = trace::arrival_rate(script)};
  return {fleet, make_policy({.name = policy}).value(), RequestStream{script, as_it_is}, 1};
}

struct Told {
  std::size_t group;
  std::int64_t start_ms;
  std::int64_t duration_ms;
  std::vector<std::int64_t> loads;

  friend bool operator==(const Told&, const Told&) = default;
  friend void PrintTo(const Told& told, std::ostream* out) {
    *out << "group " << told.group << " at " << told.start_ms << " for " << told.duration_ms << " ms, loads";
    for (const auto load : told.loads) *out << ' ' << load;
  }
};

std::vector<Told> steps_of(Simulation simulation) {
  std::vector<Told> all;
  while (const auto step = simulation.step()) {
    Told told{.group = step->group,
              .start_ms = step->start / milliseconds{1},
              .duration_ms = step->duration / milliseconds{1},
              .loads = {}};
    for (const Tokens load : step->loads.loads) told.loads.push_back(load.count());
    all.push_back(std::move(told));
  }
  return all;
}

constexpr std::int64_t kLater = 100'000;  // by then all is done

// Law: a step lasts as its most loaded worker needs; each running sequence reads one token more in the next.
TEST(Simulation, StepsLastAsLongAsTheMostLoadedWorkerNeeds) {
  const std::vector script{request(0, 5, 3), request(0, 20, 2), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation(script, "round_robin")),
              ElementsAre(Told{0, 0, 30, {5, 20}}, Told{0, 30, 31, {6, 21}}, Told{0, 61, 17, {7, 0}}));
}

// Law: what arrives during a step enters with the next one; an idle group starts as a request arrives.
TEST(Simulation, ArrivalsWaitForTheEndOfTheStepAndWakeAnIdleGroup) {
  const std::vector script{request(0, 10, 1), request(5, 30, 1), request(500, 40, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation(script, "round_robin")),
              ElementsAre(Told{0, 0, 20, {10, 0}}, Told{0, 20, 40, {0, 30}}, Told{0, 500, 50, {40, 0}}));
}

// Law: a request that arrives just as a step ends is seen there.
TEST(Simulation, ArrivalAtTheEndOfAStepIsSeenThere) {
  const std::vector script{request(0, 10, 2), request(20, 30, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation(script, "round_robin")),
              ElementsAre(Told{0, 0, 20, {10, 0}}, Told{0, 20, 40, {11, 30}}));
}

// Law: an immediate policy binds as requests arrive, and its queue stays where it is: the third request waits at the
// first worker though the second is free before. A pooled policy gives it to the second.
TEST(Simulation, ImmediatePoliciesBindOnArrivalAndPooledOnesWhenASlotIsFree) {
  const std::vector script{request(0, 10, 4), request(0, 10, 1), request(1, 10, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation(script, "round_robin", 2, 1)),
              ElementsAre(Told{0, 0, 20, {10, 10}}, Told{0, 20, 21, {11, 0}}, Told{0, 41, 22, {12, 0}},
                          Told{0, 63, 23, {13, 0}}, Told{0, 86, 20, {10, 0}}));
  EXPECT_THAT(steps_of(simulation(script, "br_0", 2, 1)),
              ElementsAre(Told{0, 0, 20, {10, 10}}, Told{0, 20, 21, {11, 10}}, Told{0, 41, 22, {12, 0}},
                          Told{0, 63, 23, {13, 0}}));
}

// Law: groups step each at its own pace.
TEST(Simulation, GroupsStepOnTheirOwn) {
  const std::vector script{request(0, 10, 2), request(0, 30, 2), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation(script, "round_robin", 1, 1, 2)),
              ElementsAre(Told{0, 0, 20, {10}}, Told{1, 0, 40, {30}}, Told{0, 20, 21, {11}}, Told{1, 40, 41, {31}}));
}

// Law: a warm fleet begins with that many running requests, evenly over workers, each in the midst of its output.
TEST(Simulation, WarmFleetBeginsAtWork) {
  const std::vector script{request(0, 1'000'000, 50), request(kLater, 1'000'000, 50)};
  Simulation warm = simulation(script, "least_tokens", 2, 4);
  Random random{3};
  warm.warm_up(script, trace::StationaryLaw{script}, 5, random);
  EXPECT_EQ(warm.router().ledger().live_leases(), 5U);
  const auto first = warm.step();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->loads.active, 6);  // and the one that arrived
  EXPECT_EQ(warm.group(0).active(0), 3);
  EXPECT_EQ(warm.group(0).active(1), 3);
  EXPECT_GE(first->loads.loads[0], Tokens{3'000'000});
  EXPECT_LT(first->loads.loads[0], Tokens{3'000'150});
}

// Law: the router's books and the engine's workers agree before every step, and both end empty.
TEST(Simulation, RouterAndEngineAgree) {
  std::vector<TraceRequest> script;
  Random random{5};
  for (std::int64_t i = 0; i < 300; ++i) {
    script.push_back(request(i * 20, static_cast<std::int64_t>(1 + random.below(50)),
                             static_cast<std::int64_t>(1 + random.below(9))));
  }
  script.push_back(request(kLater, 1, 1));
  for (const std::string_view policy : policy_names()) {
    SCOPED_TRACE(policy);
    Simulation both = simulation(script, std::string{policy}, 3, 4);
    while (const auto step = both.step()) {
      const auto booked = both.router().ledger().view(GroupId{0}).loads;
      EXPECT_TRUE(std::ranges::equal(booked, step->loads.loads));
    }
    EXPECT_EQ(both.group(0).active(), 0);
    EXPECT_EQ(both.router().ledger().live_leases(), 0U);
    EXPECT_EQ(both.router().waiting(), 1U);  // the last one, at whose arrival the run ends
    EXPECT_EQ(both.router().refused_choices(), 0U);
  }
}

// Law: a run of one request has no measured window: all figures are zero, and it supports no claim.
TEST(Simulation, OneRequestMeasuresNothing) {
  const std::vector one{request(0, 10, 5)};
  const Fleet fleet{.groups = 1, .workers = 2, .slots = 2, .step_time = {.fixed_ms = 10, .per_token_ms = 1}};
  Simulation alone{fleet, make_policy({.name = "br_0"}).value(), RequestStream{one, {}}, 1};
  const RunResult result = alone.run();
  EXPECT_EQ(result.steps, 0);
  EXPECT_TRUE(result.non_stationary);
  EXPECT_EQ(result.throughput_tokens_per_s, 0);
}

// Law: outputs of one token have a time to first token and no time per token.
TEST(Simulation, OneTokenOutputsHaveNoTimePerToken) {
  std::vector<TraceRequest> script;
  for (std::int64_t i = 0; i < 40; ++i) script.push_back(request(i * 7, 10, 1));
  const RunResult result = simulation(script, "least_tokens").run();
  EXPECT_GT(result.steps, 0);
  EXPECT_EQ(result.tpot_ms.count, 0U);
  EXPECT_EQ(result.tpot_ms.p99, 0);
  EXPECT_GT(result.ttft_ms.count, 20U);
  EXPECT_GT(result.ttft_ms.mean, 20);
}

}  // namespace
}  // namespace balanceroute::sim
