#include "policy/br_0/br_0.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "support/group_sketch.hpp"

namespace balanceroute {
namespace {

// Law: the score is the size, less G for each token above the margin.
TEST(Br0Score, WorkedExamplesOfEightWorkers) {
  EXPECT_EQ(br_0_score(Tokens{900}, Tokens{1000}, 8), Tokens{900});
  EXPECT_EQ(br_0_score(Tokens{1000}, Tokens{1000}, 8), Tokens{1000});
  EXPECT_EQ(br_0_score(Tokens{1100}, Tokens{1000}, 8), Tokens{300});
  EXPECT_EQ(br_0_score(Tokens{1200}, Tokens{1000}, 8), Tokens{-400});
}

// Law: a group of one waits for nobody, so every admission is worth nothing.
TEST(Br0Score, OneWorkerHasNothingToGain) {
  EXPECT_EQ(br_0_score(Tokens{500}, Tokens{0}, 1), Tokens{0});
}

struct Placed {
  std::size_t candidate;
  std::size_t worker;
  friend bool operator==(const Placed&, const Placed&) = default;
  friend void PrintTo(const Placed& placed, std::ostream* out) { *out << placed.candidate << "->" << placed.worker; }
};

std::vector<Choice> decide(TwoStageSettings settings, const GroupSketch& group, const std::vector<Candidate>& pool,
                           bool explain = false) {
  Random unused{0};
  std::vector<Choice> choices;
  Br0{settings}.decide({.group = group.view(), .pool = pool, .explain = explain}, unused, choices);
  return choices;
}

std::vector<Placed> places(const std::vector<Choice>& choices) {
  std::vector<Placed> all;
  all.reserve(choices.size());
  for (const Choice& choice : choices) all.push_back({choice.candidate, choice.worker});
  return all;
}

constexpr TwoStageSettings kOnlyStage2{.greedy_threshold = 1'000'000};
constexpr TwoStageSettings kOnlyStage1{.greedy_threshold = 0};

// Law: the set that fills the margin exactly is taken before the oldest request.
TEST(Br0, Stage2TakesTheSetThatFitsTheMargin) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 40, .free_slots = 2}};
  const auto choices = decide(kOnlyStage2, group, sketch_pool({{90}, {25}, {35}, {10}}));
  EXPECT_EQ(places(choices), (std::vector<Placed>{{1, 1}, {2, 1}}));
  EXPECT_EQ(choices[0].stage, Stage::subset);
  EXPECT_EQ(choices[0].set_size, 2);
  EXPECT_EQ(choices[0].score, 60);
  EXPECT_EQ(choices[0].margin, Tokens{60});
}

// Law: no slot stays empty while one waits: when nothing helps, the least harmful is taken.
TEST(Br0, WorkConservingAdmissionHarmsLeast) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 100}};
  const auto choices = decide(kOnlyStage2, group, sketch_pool({{70}, {30}, {50}}));
  EXPECT_EQ(places(choices), (std::vector<Placed>{{1, 1}}));
  EXPECT_EQ(choices[0].stage, Stage::work_conserving);
  EXPECT_EQ(choices[0].score, 30 - 2 * 30);
}

// Law: an admission worth exactly nothing is made to fill the slot, not because it helps.
TEST(Br0, AdmissionWorthNothingIsWorkConserving) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 90}};
  const Choice choice = decide(kOnlyStage2, group, sketch_pool({{20}})).at(0);
  EXPECT_EQ(choice.score, 0);
  EXPECT_EQ(choice.stage, Stage::work_conserving);
}

// Law: stage 2 looks at the first r_max candidates, stage 1 at the first stage1_window.
TEST(Br0, WindowsBoundWhatIsLookedAt) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 40}};
  const auto pool = sketch_pool({{10}, {20}, {60}});
  EXPECT_EQ(places(decide({.r_max = 2, .greedy_threshold = 9}, group, pool)), (std::vector<Placed>{{1, 1}}));
  EXPECT_EQ(places(decide({.r_max = 3, .greedy_threshold = 9}, group, pool)), (std::vector<Placed>{{2, 1}}));
  EXPECT_EQ(places(decide({.greedy_threshold = 0, .stage1_window = 2}, group, pool)), (std::vector<Placed>{{1, 1}}));
  EXPECT_EQ(places(decide({.greedy_threshold = 0, .stage1_window = 3}, group, pool)), (std::vector<Placed>{{2, 1}}));
}

// Law: stage 1 goes on while more slots than the threshold are free, then stage 2 takes over.
TEST(Br0, GreedyThresholdDividesTheStages) {
  const GroupSketch group{{.load = 0, .free_slots = 2}, {.load = 0, .free_slots = 2}};
  const auto choices = decide({.r_max = 4, .greedy_threshold = 2}, group, sketch_pool({{10}, {10}, {10}, {10}, {10}}));
  ASSERT_EQ(choices.size(), 4U);
  EXPECT_EQ(choices[0].stage, Stage::single);
  EXPECT_EQ(choices[1].stage, Stage::single);
  EXPECT_NE(choices[2].stage, Stage::single);
}

// Law: `load` asks the least loaded worker first, `capacity` the one with most free slots; both stages alike.
TEST(Br0, WorkerOrderRulesBothStages) {
  const GroupSketch group{{.load = 50, .free_slots = 3}, {.load = 10, .free_slots = 1}, {.load = 90, .free_slots = 0}};
  for (TwoStageSettings settings : {kOnlyStage1, kOnlyStage2}) {
    settings.worker_order = WorkerOrder::load;
    EXPECT_EQ(decide(settings, group, sketch_pool({{5}})).at(0).worker, 1U);
    settings.worker_order = WorkerOrder::capacity;
    EXPECT_EQ(decide(settings, group, sketch_pool({{5}})).at(0).worker, 0U);
  }
}

// Law: ties between workers go to the lower load, then to the lower position; between requests to the older.
TEST(Br0, TiesGoToTheLowestPositionAndTheOldest) {
  const GroupSketch group{{.load = 90, .free_slots = 0}, {.load = 10}, {.load = 10}};
  for (const TwoStageSettings& settings : {kOnlyStage1, kOnlyStage2}) {
    EXPECT_EQ(places(decide(settings, group, sketch_pool({{7}, {7}, {7}}))), (std::vector<Placed>{{0, 1}, {1, 2}}));
  }
}

// Law: a round sees its own admissions: equal requests spread over equal workers.
TEST(Br0, ProjectionIsRaisedByEachAdmission) {
  const GroupSketch group{{.load = 0, .free_slots = 3}, {.load = 0, .free_slots = 3}, {.load = 0, .free_slots = 3}};
  const auto choices = decide(kOnlyStage1, group, sketch_pool({{10}, {10}, {10}}));
  EXPECT_EQ(places(choices), (std::vector<Placed>{{0, 0}, {1, 1}, {2, 2}}));
}

// Law: a draining worker counts for G and for the envelope, and takes nothing.
TEST(Br0, DrainingWorkerStaysInTheBarrier) {
  const GroupSketch group{{.load = 0, .eligible = false}, {.load = 100, .free_slots = 0}, {.load = 90}};
  const auto choices = decide(kOnlyStage2, group, sketch_pool({{12}}));
  EXPECT_EQ(places(choices), (std::vector<Placed>{{0, 2}}));
  EXPECT_EQ(choices[0].score, 12 - 3 * 2);
}

TEST(Br0, NothingToDoIsNoChoice) {
  EXPECT_TRUE(decide(kOnlyStage2, {}, sketch_pool({{1}})).empty());
  EXPECT_TRUE(decide(kOnlyStage2, {{.load = 1}}, {}).empty());
  EXPECT_TRUE(decide(kOnlyStage2, {{.load = 1, .free_slots = 0}}, sketch_pool({{1}})).empty());
  EXPECT_TRUE(decide(kOnlyStage2, {{.load = 1, .eligible = false}}, sketch_pool({{1}})).empty());
}

// Law: one passed over max_passes times is first and alone, whatever its score.
TEST(Br0, OverdueCandidateIsFirstAndAlone) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 40, .free_slots = 2}};
  const auto choices =
      decide({.greedy_threshold = 9, .max_passes = 3}, group, sketch_pool({{900, 1, 3}, {25, 1, 1}, {35}}));
  ASSERT_EQ(choices.size(), 2U);
  EXPECT_EQ(choices[0].candidate, 0U);
  EXPECT_EQ(choices[0].stage, Stage::overdue);
  EXPECT_NE(choices[1].stage, Stage::overdue);
}

// Law: it is so wherever it stands: those of a higher class may be before it, on and on.
TEST(Br0, OverdueCandidateGoesBeforeAHigherClass) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 40, .free_slots = 1}};
  auto pool = sketch_pool({{25}, {900, 1, 3}, {35, 1, 3}});
  pool[0].request.priority = 1;
  const auto choices = decide({.greedy_threshold = 0, .max_passes = 3}, group, pool);
  EXPECT_EQ(places(choices), (std::vector<Placed>{{1, 1}}));
  EXPECT_EQ(choices[0].stage, Stage::overdue);
}

// Law: passes count within the round too.
TEST(Br0, CandidateBecomesOverdueWithinARound) {
  const GroupSketch group{{.load = 100, .free_slots = 0}, {.load = 0, .free_slots = 4}};
  const auto choices =
      decide({.greedy_threshold = 0, .max_passes = 2}, group, sketch_pool({{500}, {40}, {30}, {20}, {10}}));
  EXPECT_EQ(places(choices), (std::vector<Placed>{{1, 1}, {2, 1}, {0, 1}, {4, 1}}));
  EXPECT_EQ(choices[2].stage, Stage::overdue);
}

// Law: a wide request that fits nowhere is passed by narrower ones; its slots are not split over workers.
TEST(Br0, WideRequestWaitsForSlotsTogether) {
  const GroupSketch group{{.load = 0, .free_slots = 2, .sequences = 2}, {.load = 5, .free_slots = 2, .sequences = 2}};
  EXPECT_EQ(places(decide(kOnlyStage2, group, sketch_pool({{10, 3}, {10, 2}, {10, 2}}))),
            (std::vector<Placed>{{1, 0}, {2, 1}}));
}

// Law: for an overdue request too wide for now, the worker with most free slots is kept; the others go on.
TEST(Br0, OverdueWideRequestHoldsOneWorker) {
  const GroupSketch group{{.load = 0, .free_slots = 1, .sequences = 3}, {.load = 9, .free_slots = 2, .sequences = 2}};
  const TwoStageSettings settings{.greedy_threshold = 9, .max_passes = 5};
  EXPECT_EQ(places(decide(settings, group, sketch_pool({{10, 3, 5}, {10}, {10}, {10}}))),
            (std::vector<Placed>{{1, 0}}));
  const GroupSketch later{{.load = 10, .free_slots = 0, .sequences = 4}, {.load = 5, .free_slots = 3, .sequences = 1}};
  EXPECT_EQ(places(decide(settings, later, sketch_pool({{10, 3, 6}, {10}, {10}}))), (std::vector<Placed>{{0, 1}}));
}

// Law: however many wide requests are overdue, one worker at a time is kept: the one for the oldest.
TEST(Br0, OneWorkerIsHeldForAllOverdueRequests) {
  const GroupSketch group{{.load = 0, .free_slots = 1, .sequences = 1},
                          {.load = 5, .free_slots = 1, .sequences = 3},
                          {.load = 9, .free_slots = 1, .sequences = 3}};
  EXPECT_EQ(places(decide({.greedy_threshold = 9, .max_passes = 5}, group,
                          sketch_pool({{10, 2, 7}, {10, 4, 6}, {10}, {10}, {10}}))),
            (std::vector<Placed>{{2, 1}, {3, 2}}));
}

// Law: a worker is kept also when it had found nothing to fit before the wide request became overdue.
TEST(Br0, IdleWorkerMayBeHeld) {
  const GroupSketch group{{.load = 0, .free_slots = 2, .sequences = 2},
                          {.load = 10, .free_slots = 3, .sequences = 1},
                          {.load = 20, .free_slots = 1, .sequences = 3}};
  const TwoStageSettings settings{.r_max = 2, .greedy_threshold = 9, .stage1_window = 2, .max_passes = 5};
  EXPECT_EQ(places(decide(settings, group, sketch_pool({{10, 4, 4}, {10, 3}, {10, 3}, {10}}))),
            (std::vector<Placed>{{1, 1}, {3, 2}}));
}

// Law: no worker of this group is kept for a request that it could never hold.
TEST(Br0, TooWideForTheGroupHoldsNothing) {
  const GroupSketch group{{.load = 0, .free_slots = 2}};
  EXPECT_EQ(places(decide({.greedy_threshold = 9, .max_passes = 5}, group, sketch_pool({{10, 3, 5}, {10}}))),
            (std::vector<Placed>{{1, 0}}));
}

// Law: the runner-up is the best other worker with room for the same set, of equal ones the least loaded; it is found
// only when asked for.
TEST(Br0, RunnerUpOnRequest) {
  const GroupSketch group{
      {.load = 100, .free_slots = 0}, {.load = 40}, {.load = 70}, {.load = 60}, {.load = 0, .eligible = false}};
  EXPECT_FALSE(decide(kOnlyStage2, group, sketch_pool({{35}})).at(0).runner_up);
  for (const std::int64_t prompt : {35, 25}) {  // more than fits the third, and what fits both
    const Choice choice = decide(kOnlyStage2, group, sketch_pool({{prompt}}), true).at(0);
    EXPECT_EQ(choice.worker, 1U);
    ASSERT_TRUE(choice.runner_up);
    EXPECT_EQ(choice.runner_up->worker, 3U);
    EXPECT_EQ(choice.runner_up->score, static_cast<double>(prompt));
    EXPECT_EQ(choice.margin, Tokens{60});
  }
}

TEST(Br0, NoRunnerUpWithoutAnotherWorker) {
  EXPECT_FALSE(decide(kOnlyStage2, {{.load = 1}}, sketch_pool({{1}}), true).at(0).runner_up);
}

}  // namespace
}  // namespace balanceroute
