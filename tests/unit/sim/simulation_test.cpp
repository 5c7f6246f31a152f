// Laws of one simulated run, by scripts that can be followed by hand.
#include "sim/simulation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
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

// Three hundred short requests, one each `gap_ms`, and one later.
std::vector<TraceRequest> random_script(std::uint64_t seed, std::int64_t gap_ms) {
  std::vector<TraceRequest> script;
  Random random{seed};
  for (std::int64_t i = 0; i < 300; ++i) {
    script.push_back(request(i * gap_ms, static_cast<std::int64_t>(1 + random.below(50)),
                             static_cast<std::int64_t>(1 + random.below(9))));
  }
  script.push_back(request(kLater, 1, 1));
  return script;
}

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
  const auto script = random_script(5, 20);
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

Simulation simulation_of(const Fleet& fleet, const std::vector<TraceRequest>& script, std::unique_ptr<Policy> policy) {
  const StreamSettings as_it_is{.arrivals = ArrivalLaw::trace, .rate_per_second = trace::arrival_rate(script)};
  return {fleet, std::move(policy), RequestStream{script, as_it_is}, 1};
}

Simulation simulation_of(const Fleet& fleet, const std::vector<TraceRequest>& script, const std::string& policy) {
  return simulation_of(fleet, script, make_policy({.name = policy}).value());
}

// Two workers of one slot; steps of 10 ms and 1 ms a token.
Fleet small_fleet() {
  return {.groups = 1, .workers = 2, .slots = 1, .step_time = {.fixed_ms = 10, .per_token_ms = 1}};
}

// Law: an admission takes its delay to reach the worker and holds its slot meanwhile; it enters with the first step
// after that, and an empty group starts just then.
TEST(Simulation, AdmissionsTakeTheirDelay) {
  Fleet fleet = small_fleet();
  fleet.admission_delay = {.fixed_ms = 3, .per_token_ms = 0.1};
  const std::vector script{request(0, 10, 2), request(0, 20, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "br_0")),
              ElementsAre(Told{0, 4, 20, {10, 0}}, Told{0, 24, 30, {11, 20}}));
}

// Law: what an immediate policy bound is handed over while it waits for a slot; a pooled admission only begins then.
TEST(Simulation, BoundRequestsAreHandedOverWhileTheyWait) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.admission_delay = {.fixed_ms = 5};
  const std::vector script{request(0, 10, 1), request(0, 10, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "least_tokens")),
              ElementsAre(Told{0, 5, 20, {10}}, Told{0, 25, 20, {10}}));
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "br_0")), ElementsAre(Told{0, 5, 20, {10}}, Told{0, 30, 20, {10}}));
}

// Law: one that may wait inside the worker is handed over while the one before it is decoded.
TEST(Simulation, HandOverOverlapsDecodingOfTheOneAhead) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.slots_ahead = 1;
  fleet.admission_delay = {.fixed_ms = 5};
  const std::vector script{request(0, 10, 1), request(0, 10, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "br_0")), ElementsAre(Told{0, 5, 20, {10}}, Told{0, 25, 20, {10}}));
}

// Law: whatever waits inside them, workers decode no more than their slots, under every policy, and all is placed.
TEST(Simulation, WorkersDecodeNoMoreThanTheirSlots) {
  const auto script = random_script(6, 15);
  Fleet fleet = small_fleet();
  fleet.workers = 3;
  fleet.slots = 2;
  fleet.slots_ahead = 2;
  for (const std::string_view policy : policy_names()) {
    SCOPED_TRACE(policy);
    Simulation run = simulation_of(fleet, script, std::string{policy});
    std::int32_t most = 0;
    while (run.step()) {
      for (std::size_t worker = 0; worker < fleet.workers; ++worker) {
        EXPECT_LE(run.group(0).active(worker), fleet.slots);
        most = std::max(most, run.router().ledger().view(GroupId{0}).sequences[worker]);
      }
    }
    EXPECT_EQ(most, fleet.slots + fleet.slots_ahead);
    EXPECT_EQ(run.router().waiting(), 1U);
    EXPECT_EQ(run.router().refused_choices(), 0U);
  }
}

// Law: with prefill instances a request reaches the router when its prompt is ready; of one instance one by one.
TEST(Simulation, RequestsReachTheRouterWhenPrefilled) {
  Fleet fleet = small_fleet();
  fleet.prefill = engine::PrefillSettings{.instances = 1, .time = {.fixed_ms = 100}};
  const std::vector script{request(0, 10, 1), request(0, 20, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "br_0")),
              ElementsAre(Told{0, 100, 20, {10, 0}}, Told{0, 200, 30, {20, 0}}));
}

// Law: prefill KV is held until the worker has the prompt: while the only slot is busy the next prompt cannot start.
TEST(Simulation, PrefillWaitsForItsKvToBePulled) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.prefill = engine::PrefillSettings{.instances = 1, .time = {.fixed_ms = 10}, .kv_capacity = Tokens{25}};
  const std::vector script{request(0, 10, 4), request(0, 10, 1), request(0, 20, 1), request(kLater, 1, 1)};
  // The first is pulled at 10, the second at 96 when the first has left, and only then the third is prefilled.
  EXPECT_THAT(steps_of(simulation_of(fleet, script, "least_tokens")),
              ElementsAre(Told{0, 10, 20, {10}}, Told{0, 30, 21, {11}}, Told{0, 51, 22, {12}}, Told{0, 73, 23, {13}},
                          Told{0, 96, 20, {10}}, Told{0, 116, 30, {20}}));
}

// Law: where KV space runs out the youngest is preempted, counted, and finishes later.
TEST(Simulation, CountsPreemptions) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.slots = 2;
  std::vector script{request(0, 1, 1)};
  for (std::int64_t i = 0; i < 20; ++i) script.push_back(request(1000 * i, 10, 20));
  script.push_back(request(kLater, 1, 1));
  fleet.kv.capacity = Tokens{40};
  std::ranges::for_each(script, [](TraceRequest& each) { each.arrival /= 4; });
  const RunResult tight = simulation_of(fleet, script, "least_tokens").run();
  EXPECT_GT(tight.preemptions, 5);
  fleet.kv.capacity = Tokens{60};
  const RunResult roomy = simulation_of(fleet, script, "least_tokens").run();
  EXPECT_EQ(roomy.preemptions, 0);
  EXPECT_GT(tight.tpot_ms.max, roomy.tpot_ms.max);
  EXPECT_GT(tight.recomputed_tokens, 5 * 10);
  EXPECT_EQ(roomy.recomputed_tokens, 0);
}

// Law: the step in which a preempted sequence goes on lasts longer by the time to compute its KV anew.
//   Two sequences of 10 and 11 tokens outgrow 24 after the first step; the younger waits until the older has left.
TEST(Simulation, ComputingKvAnewTakesTime) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.slots = 2;
  fleet.kv.capacity = Tokens{24};
  fleet.recompute_per_token_ms = 2;
  const std::vector script{request(0, 10, 2), request(0, 11, 2), request(kLater, 1, 1)};
  const auto steps = steps_of(simulation_of(fleet, script, "least_tokens"));
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].loads, std::vector<std::int64_t>{21});
  EXPECT_EQ(steps[1].loads, std::vector<std::int64_t>{11});
  EXPECT_EQ(steps[1].duration_ms, 10 + 11);
  EXPECT_EQ(steps[2].loads, std::vector<std::int64_t>{12});
  EXPECT_EQ(steps[2].duration_ms, 10 + 12 + 2 * 12);
}

// Law: the router gives a worker no more than its KV space beside the reserve, so that a large enough reserve spares
// every preemption; and a request waits for KV space though slots are free.
TEST(Simulation, AReserveSparesPreemptions) {
  Fleet fleet = small_fleet();
  fleet.workers = 1;
  fleet.slots = 2;
  std::vector script{request(0, 1, 1)};
  for (std::int64_t i = 0; i < 20; ++i) script.push_back(request(1000 * i, 10, 20));
  script.push_back(request(kLater, 1, 1));
  std::ranges::for_each(script, [](TraceRequest& each) { each.arrival /= 4; });
  fleet.kv = {.capacity = Tokens{40}, .reserve = Tokens{21}};
  Simulation simulation = simulation_of(fleet, script, "least_tokens");
  bool waited = false;
  while (simulation.step()) waited = waited || simulation.router().waiting() > 0;
  EXPECT_TRUE(waited);
  EXPECT_EQ(simulation.result().preemptions, 0);
}

// ReluctantPolicy gives the oldest request to the first worker, but only when asked for the third time.
class ReluctantPolicy final : public PooledPolicy {
 public:
  std::string_view name() const override { return "reluctant"; }
  double score(const FleetView&, GroupId, std::size_t, const Candidate&) const override { return 0; }
  std::string_view score_meaning() const override { return "nothing"; }
  void decide(const RoundInput&, Random&, std::vector<Choice>& choices) override {
    if (++asked_ % 3 == 0) choices.push_back({.candidate = 0, .worker = 0, .stage = Stage::single});
  }

 private:
  int asked_ = 0;
};

// Law: a policy that leaves an empty group without work is asked again an empty step later.
TEST(Simulation, AnEmptyGroupAsksAgainWhileRequestsWait) {
  const std::vector script{request(0, 10, 1), request(kLater, 1, 1)};
  EXPECT_THAT(steps_of(simulation_of(small_fleet(), script, std::make_unique<ReluctantPolicy>())),
              ElementsAre(Told{0, 20, 20, {10, 0}}));
}

}  // namespace
}  // namespace balanceroute::sim
