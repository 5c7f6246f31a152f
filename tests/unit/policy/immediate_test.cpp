#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "policy/registry.hpp"
#include "support/fleet_sketch.hpp"
#include "support/group_sketch.hpp"

namespace balanceroute {
namespace {

class Bound {
 public:
  explicit Bound(const std::string& name) : policy_{make_policy({.name = name}).value()} {}
  std::optional<WorkerId> operator()(const FleetSketch& fleet, std::int32_t sequences = 1) {
    const auto pool = sketch_pool({{.prompt = 100, .sequences = sequences}});
    return static_cast<ImmediatePolicy&>(*policy_).bind(fleet.view(), pool[0], random_);
  }
  double score(const FleetSketch& fleet, std::uint32_t group, std::size_t worker) {
    return policy_->score(fleet.view(), GroupId{group}, worker, sketch_pool({{100}})[0]);
  }

 private:
  std::unique_ptr<Policy> policy_;
  Random random_{1};
};

// Law: counts per slot decide, over all groups, whatever the loads.
TEST(JoinShortestQueue, CountsSequencesPerSlot) {
  const FleetSketch fleet{
      {{{.load = 1, .free_slots = 2, .sequences = 2}},
       {{.load = 9999, .free_slots = 8, .sequences = 4}, {.load = 5, .free_slots = 0, .sequences = 1}}}};
  Bound bind{"join_shortest_queue"};
  EXPECT_EQ(bind(fleet), WorkerId{1});  // 4 of 12 against 2 of 4 and 1 of 1
  EXPECT_DOUBLE_EQ(bind.score(fleet, 1, 0), -4.0 / 12);
}

// Law: what is queued counts like what runs.
TEST(JoinShortestQueue, QueuedSequencesCount) {
  FleetSketch fleet{{{{.free_slots = 3, .sequences = 1}, {.free_slots = 2, .sequences = 2}}}};
  Bound bind{"join_shortest_queue"};
  EXPECT_EQ(bind(fleet), WorkerId{0});
  fleet.queued[0].sequences = 2;
  EXPECT_EQ(bind(fleet), WorkerId{1});
}

// Law: loads per slot decide, running and queued, whatever the counts.
TEST(LeastTokens, CountsLoadPerSlot) {
  FleetSketch fleet{{{{.load = 100, .free_slots = 1, .sequences = 1}, {.load = 300, .free_slots = 0, .sequences = 8}}}};
  Bound bind{"least_tokens"};
  EXPECT_EQ(bind(fleet), WorkerId{1});
  EXPECT_DOUBLE_EQ(bind.score(fleet, 0, 1), -300.0 / 8);
  fleet.queued[1].load = Tokens{150};
  EXPECT_EQ(bind(fleet), WorkerId{0});
}

// How often each worker is bound to in 6000 tries.
std::map<std::uint32_t, int> hits(const std::string& policy, const FleetSketch& fleet) {
  Bound bind{policy};
  std::map<std::uint32_t, int> counts;
  for (int i = 0; i < 6000; ++i) ++counts[bind(fleet)->value()];
  return counts;
}
constexpr double kFiveDeviations = 200;

// Law: equal workers draw lots, each with the same chance.
TEST(LeastTokens, TiesAreDrawnEvenly) {
  auto counts = hits("least_tokens", FleetSketch{{{{.load = 4}, {.load = 9}, {.load = 4}}, {{.load = 4}}}});
  EXPECT_EQ(counts.size(), 3U);
  for (const std::uint32_t worker : {0U, 2U, 3U}) EXPECT_NEAR(counts[worker], 2000, kFiveDeviations);
}

TEST(JoinShortestQueue, TiesAreDrawnEvenly) {
  FleetSketch fleet{{{{.free_slots = 3, .sequences = 1}, {.free_slots = 1, .sequences = 1}},
                     {{.free_slots = 8, .sequences = 0}, {.free_slots = 6, .sequences = 2}}}};
  fleet.queued[2].sequences = 2;
  auto counts = hits("join_shortest_queue", fleet);
  EXPECT_EQ(counts.size(), 3U);
  for (const std::uint32_t worker : {0U, 2U, 3U}) EXPECT_NEAR(counts[worker], 2000, kFiveDeviations);
}

// Law: every worker that can hold the request has the same chance, whatever it holds already.
TEST(RandomWorker, DrawsEvenly) {
  const FleetSketch fleet{{{{.load = 4, .free_slots = 0, .sequences = 9}, {.eligible = false}}, {{}, {.load = 999}}}};
  auto counts = hits("random", fleet);
  EXPECT_EQ(counts.size(), 3U);
  for (const std::uint32_t worker : {0U, 2U, 3U}) EXPECT_NEAR(counts[worker], 2000, kFiveDeviations);
  EXPECT_DOUBLE_EQ(Bound{"random"}.score(fleet, 1, 1), 1.0 / 3);
}

// Law: of two different workers drawn by lot the one with fewer sequences per slot: of three, the best is in two of
// three pairs, the worst never better.
TEST(PowerOfTwo, TakesTheBetterOfTwo) {
  FleetSketch fleet{{{{.free_slots = 2, .sequences = 2}}, {{.free_slots = 9, .sequences = 3}, {.free_slots = 4}}}};
  fleet.queued[2].sequences = 3;  // 2 of 4, 3 of 12, 3 of 4
  auto counts = hits("power_of_two", fleet);
  EXPECT_EQ(counts.size(), 2U);
  EXPECT_NEAR(counts[1], 4000, kFiveDeviations);
  EXPECT_NEAR(counts[0], 2000, kFiveDeviations);
  EXPECT_DOUBLE_EQ(Bound{"power_of_two"}.score(fleet, 1, 1), -3.0 / 4);
}

TEST(PowerOfTwo, TiesAreDrawnEvenly) {
  const FleetSketch fleet{
      {{{.free_slots = 1, .sequences = 1}}, {{.free_slots = 2, .sequences = 2}, {.eligible = false}}}};
  auto counts = hits("power_of_two", fleet);
  EXPECT_NEAR(counts[0], 3000, kFiveDeviations);
  EXPECT_NEAR(counts[1], 3000, kFiveDeviations);
}

// Law: the worker of highest F = D - G * (D - margin)+ on virtual loads; on equal F the one of least load.
TEST(Br0Bypass, TakesTheBestScoreOnVirtualLoad) {
  FleetSketch fleet{{{{.load = 500, .free_slots = 2}, {.load = 390, .free_slots = 2}, {.load = 420, .free_slots = 2}}}};
  Bound bind{"br_0_bypass"};
  EXPECT_EQ(bind.score(fleet, 0, 0), 100 - 3 * 100);
  EXPECT_EQ(bind.score(fleet, 0, 1), 100);
  EXPECT_EQ(bind.score(fleet, 0, 2), 100 - 3 * 20);
  EXPECT_EQ(bind(fleet), WorkerId{1});
  fleet.queued[1] = {.load = Tokens{200}, .sequences = 1};  // now the envelope
  EXPECT_EQ(bind.score(fleet, 0, 0), 100 - 3 * 10);
  EXPECT_EQ(bind.score(fleet, 0, 2), 100);
  EXPECT_EQ(bind(fleet), WorkerId{2});
  fleet.queued[1] = {.load = Tokens{400}, .sequences = 1};  // both others have the margin
  EXPECT_EQ(bind.score(fleet, 0, 0), bind.score(fleet, 0, 2));
  EXPECT_EQ(bind(fleet), WorkerId{2});
}

// Law: while any worker could admit the request at once, it is not queued, however good the score.
TEST(Br0Bypass, AFreeSlotGoesBeforeAQueue) {
  FleetSketch fleet{{{{.load = 0, .free_slots = 0, .sequences = 1}, {.load = 900, .free_slots = 1, .sequences = 3}}}};
  Bound bind{"br_0_bypass"};
  EXPECT_EQ(bind(fleet), WorkerId{1});
  EXPECT_EQ(bind(fleet, 2), WorkerId{1});  // too wide for the other one
  fleet.queued[1].sequences = 1;           // its slot is promised
  EXPECT_EQ(bind(fleet), WorkerId{0});
}

// Law: the group of least virtual load per slot that has room takes it: F knows no other group.
TEST(Br0Bypass, TakesTheLightestGroup) {
  FleetSketch fleet{{{{.load = 900, .free_slots = 2}, {.load = 100, .free_slots = 2}},
                     {{.load = 300, .free_slots = 4}, {.load = 300, .free_slots = 4}}}};
  Bound bind{"br_0_bypass"};
  EXPECT_EQ(bind(fleet), WorkerId{2});
  fleet.queued[3].load = Tokens{1'600};
  EXPECT_EQ(bind(fleet), WorkerId{1});
  FleetSketch full{{{{.load = 0, .free_slots = 0, .sequences = 2}, {.load = 0, .free_slots = 0, .sequences = 2}},
                    {{.load = 900, .free_slots = 1}, {.load = 900, .free_slots = 0, .sequences = 1}}}};
  EXPECT_EQ(bind(full), WorkerId{2});
}

// Law: turns go through all groups by id, and pass over workers that take nothing.
TEST(RoundRobin, GoesRoundTheEligible) {
  FleetSketch fleet{{{{}, {}}, {{.eligible = false}, {}}}};
  Bound bind{"round_robin"};
  EXPECT_EQ(bind.score(fleet, 1, 1), -3);
  for (const std::uint32_t expected : {0U, 1U, 3U, 0U, 1U}) EXPECT_EQ(bind(fleet), WorkerId{expected});
  EXPECT_EQ(bind.score(fleet, 1, 1), -1);
  EXPECT_EQ(bind.score(fleet, 0, 0), -2);
}

// Law: no policy binds to a worker that is too small or takes nothing.
TEST(ImmediatePolicies, BindOnlyWhereTheRequestFits) {
  const FleetSketch fleet{
      {{{.free_slots = 8, .eligible = false}, {.free_slots = 2}, {.free_slots = 0, .sequences = 3}}}};
  for (const std::string name :
       {"random", "round_robin", "power_of_two", "join_shortest_queue", "least_tokens", "br_0_bypass"}) {
    SCOPED_TRACE(name);
    Bound bind{name};
    EXPECT_EQ(bind(fleet, 3), WorkerId{2});
    EXPECT_EQ(bind(fleet, 4), std::nullopt);
    EXPECT_EQ(bind(FleetSketch{{}}), std::nullopt);
  }
}

}  // namespace
}  // namespace balanceroute
