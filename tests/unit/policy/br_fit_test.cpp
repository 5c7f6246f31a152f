#include "policy/br_fit/br_fit.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <numeric>
#include <string>
#include <vector>

#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "support/group_sketch.hpp"

namespace balanceroute {
namespace {

std::vector<Choice> decide(BrFit& policy, const GroupSketch& group, const std::vector<Candidate>& pool,
                           bool explain = false) {
  std::vector<Choice> choices;
  Random random{1};
  policy.decide({.group = group.view(), .pool = pool, .explain = explain}, random, choices);
  std::ranges::sort(choices, {}, &Choice::candidate);
  return choices;
}

// Tells the policy of 500 requests with such a prompt that ended at such a length.
void learn(BrFit& policy, std::int64_t prompt, std::int64_t output) {
  for (std::uint64_t i = 0; i < 500; ++i) {
    policy.admitted({.id = RequestId{i}, .prompt = Tokens{prompt}}, GroupId{0}, WorkerId{0});
    policy.left(RequestId{i}, Tokens{output}, LeaseEnd::finished);
  }
}

// Tells it of rare prompts of a third of a worker's load, and that prompts are most of the load of three workers.
void know_giants(BrFit& policy) {
  for (std::uint64_t i = 0; i < 100; ++i) {
    const Request request{.id = RequestId{1000 + i}, .prompt = Tokens{i % 10 == 0 ? 30'000 : 200}};
    policy.arrived({.request = request, .weight = request.prompt, .serial = i});
  }
  for (std::uint32_t worker = 0; worker < 3; ++worker) {
    policy.admitted({.id = RequestId{worker}, .prompt = Tokens{60'000}}, GroupId{0}, WorkerId{worker});
  }
}

// A fleet in virtual time that runs a list of requests, known to the test alone, under one policy.
class Fleet {
 public:
  struct Arrival {
    std::int64_t prompt;
    std::int64_t output;
    std::int64_t step = 0;
  };

  Fleet(const BrFitParams& params, std::uint32_t workers, std::int32_t slots)
      : router{"fleet", make_policy({.name = "br_fit", .br_fit = params}).value(), 1},
        group{router.add_group("group")} {
    for (std::uint32_t i = 0; i < workers; ++i)
      router.add_worker(group, "http://host", static_cast<std::int32_t>(i), slots).value();
  }

  void arrive(const Arrival& arrival) {
    const RequestId id{all.size()};
    all.push_back({arrival, now});
    ASSERT_TRUE(router.submit({.id = id, .prompt = Tokens{arrival.prompt}}));
  }

  // Ends, a round, and a step of every running request.
  void step() {
    for (auto it = running.begin(); it != running.end();) {
      if (it->second.ends > now) {
        ++it;
        continue;
      }
      tokens += all[it->first].arrival.output;
      ++finished;
      it->second.lease.finish(Tokens{all[it->first].arrival.output});
      it = running.erase(it);
    }
    for (Admission& admission : router.round(group)) {
      const std::uint64_t id = admission.request.id.value();
      all[id].admitted = now;
      Held& held = running[id];
      held = {std::move(admission.lease), admission.worker, now + all[id].arrival.output};
      held.lease.started();
      history.emplace_back(id, admission.worker.value());
    }
    const auto loads = router.ledger().view(group).loads;
    time += 97'240 + static_cast<double>(largest_load(loads).count());
    router.advance(group, Steps{1});
    ++now;
  }

  struct Known {
    Arrival arrival;
    std::int64_t arrived;
    std::int64_t admitted = -1;
  };
  struct Held {
    Lease lease;
    WorkerId worker;
    std::int64_t ends = 0;
  };

  Router router;
  GroupId group;
  std::vector<Known> all;
  std::map<std::uint64_t, Held> running;
  std::vector<std::pair<std::uint64_t, std::uint32_t>> history;
  std::int64_t now = 0;
  std::int64_t tokens = 0;
  std::size_t finished = 0;
  double time = 0;  // of all steps, in tokens that take as long
};

// Law: in saturation a slot gets the request that brings its worker to its share of the mean.
TEST(BrFit, FillsASlotToTheMean) {
  BrFit policy{{.horizon_weight = 0}};
  const GroupSketch group{{.load = 9'000, .free_slots = 1, .sequences = 5},
                          {.load = 10'000, .free_slots = 0, .sequences = 6}};
  // The slot is worth 1/1 of the mean size: target (19000 + 1100) / 2 = 10050, so 1050 are missing.
  const auto choices = decide(policy, group, sketch_pool({{2'000}, {1'000}, {300}}));
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].candidate, 1U);
  EXPECT_EQ(choices[0].worker, 0U);
  EXPECT_EQ(choices[0].margin, Tokens{1'000});
}

// Law: with slots to spare and prompts alike the lightest worker is filled; once rare giants are known, the fullest
// one that stays below the ceiling.
TEST(BrFit, GiantsTurnEvenFillingIntoBestFit) {
  const GroupSketch group{{.load = 50'000, .free_slots = 3, .sequences = 9},
                          {.load = 70'000, .free_slots = 3, .sequences = 9},
                          {.load = 90'000, .free_slots = 3, .sequences = 9}};
  BrFit even{{}};
  EXPECT_EQ(decide(even, group, sketch_pool({{200}})).at(0).worker, 0U);

  BrFit fitting{{}};
  know_giants(fitting);
  EXPECT_EQ(decide(fitting, group, sketch_pool({{200}})).at(0).worker, 1U);
}

// Law: whoever lost eight units of lateness is served first; one place less and it is not forced.
TEST(BrFit, TheLateOneTakesTheNextSlot) {
  BrFit policy{{.lateness_price = 0}};
  const GroupSketch group{{.load = 9'000, .free_slots = 1, .sequences = 5},
                          {.load = 10'000, .free_slots = 0, .sequences = 6}};
  auto pool = sketch_pool({{90'000, 1, 128}, {1'000}, {300}});
  ASSERT_EQ(decide(policy, group, pool).size(), 1U);
  EXPECT_EQ(decide(policy, group, pool)[0].candidate, 0U);
  EXPECT_EQ(decide(policy, group, pool)[0].stage, Stage::overdue);
  pool[0].passes = 127;
  EXPECT_NE(decide(policy, group, pool).at(0).candidate, 0U);
}

// Law: a request that would lift the envelope by more than it is worth waits, and no longer than hold_rounds rounds.
TEST(BrFit, HoldsForEightRoundsAtMost) {
  BrFit policy{{}};
  GroupSketch group{{.load = 100'000, .free_slots = 2, .sequences = 20},
                    {.load = 10'000, .free_slots = 0, .sequences = 22}};
  group.slots[0] = 22;
  const auto pool = sketch_pool({{50'000}});
  for (int round = 0; round < 8; ++round) EXPECT_TRUE(decide(policy, group, pool).empty()) << round;
  const auto released = decide(policy, group, pool);
  ASSERT_EQ(released.size(), 1U);
  EXPECT_EQ(released[0].worker, 0U);
}

// Law: even while a deep pool could keep it so for ever, a worker is closed at most hold_rounds rounds in a row.
TEST(BrFit, AWorkerIsClosedForEightRoundsAtMost) {
  BrFit policy{{.hold_price = 0}};
  const GroupSketch group{{.load = 100'000, .free_slots = 1, .sequences = 20},
                          {.load = 10'000, .free_slots = 0, .sequences = 21}};
  const auto pool = sketch_pool({{5'000}, {6'000}, {7'000}});
  // Closed for eight rounds and open for one, in which the hold takes its request back, as often as it may; then not.
  for (int round = 0; round < 9 * 8 + 8; ++round) EXPECT_TRUE(decide(policy, group, pool).empty()) << round;
  EXPECT_EQ(decide(policy, group, pool).size(), 1U);
}

// Law: in saturation a request counts with half of its expected age while it runs: a short prompt that has long answers
// is the larger one of two.
TEST(BrFit, ExpectedAgeCountsInSaturation) {
  BrFit policy{{.horizon_weight = 0}};
  learn(policy, 100, 4'000);
  learn(policy, 330, 1'000);
  // Sizes are about 1090 and 700, not 100 and 330; the slot lacks about 1050.
  const GroupSketch group{{.load = 8'800, .free_slots = 1, .sequences = 5},
                          {.load = 10'000, .free_slots = 0, .sequences = 6}};
  const auto choices = decide(policy, group, sketch_pool({{100}, {330}}));
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].candidate, 0U);
}

// Law: below saturation its prompt alone counts: the fullest worker under the ceiling takes it, however old it may
// grow.
TEST(BrFit, ExpectedAgeDoesNotCountBelowSaturation) {
  BrFit policy{{.horizon_weight = 0}};
  learn(policy, 200, 80'000);
  know_giants(policy);
  const GroupSketch group{{.load = 50'000, .free_slots = 3, .sequences = 9},
                          {.load = 70'000, .free_slots = 3, .sequences = 9},
                          {.load = 90'000, .free_slots = 3, .sequences = 9}};
  EXPECT_EQ(decide(policy, group, sketch_pool({{200}})).at(0).worker, 1U);
}

// Law: what is known of steps is put in where nothing was asked for; the longer the part that no load changes, the more
// envelope is one more running request worth.
TEST(BrFit, ALongFixedPartMakesTheEnvelopeCheap) {
  const GroupSketch group{{.load = 10'000, .free_slots = 1, .sequences = 100},
                          {.load = 5'000, .free_slots = 0, .sequences = 100}};
  const auto takes = [&](const BrFitParams& params, std::int64_t prompt) {
    BrFit policy{params};
    return decide(policy, group, sketch_pool({{prompt}})).size() == 1;
  };
  BrFitParams known;
  known.know_step_time(60, 4e-5);
  EXPECT_EQ(known.fixed_step_tokens, 1'500'000);
  EXPECT_TRUE(takes(known, 7'550));  // (1500000 + 10000) / 200
  EXPECT_FALSE(takes(known, 7'551));
  BrFitParams asked{.fixed_step_tokens = 0};
  asked.know_step_time(60, 4e-5);
  EXPECT_TRUE(takes(asked, 50));  // 10000 / 200
  EXPECT_FALSE(takes(asked, 51));
  EXPECT_FALSE(takes({}, 7'550));
  BrFitParams level;
  level.know_step_time(60, 0);
  EXPECT_TRUE(takes(level, 1'000'000));
}

// Law: the fullest worker is closed only if it would rise above itself by more than that is worth, however far the
// others are below it.
TEST(BrFit, TheFullestWorkerIsMeasuredByItself) {
  BrFit policy{{}};
  const GroupSketch group{{.load = 10'000, .free_slots = 1, .sequences = 100},
                          {.load = 5'000, .free_slots = 0, .sequences = 100}};
  // One more running request is worth (97240 + 10000) / 200 = 536 tokens of envelope.
  EXPECT_EQ(decide(policy, group, sketch_pool({{536}})).size(), 1U);
  EXPECT_EQ(decide(policy, group, sketch_pool({{537}})).size(), 0U);
}

// Law: a worker takes what its KV space holds and no more; the request for which none has the space neither waits for
// a slot nor is it held, so no round gives it one.
TEST(BrFit, KvSpaceIsRespected) {
  BrFit policy{{}};
  GroupSketch group{{.load = 100, .free_slots = 4, .sequences = 4, .kv_free = Tokens{1'000}},
                    {.load = 900, .free_slots = 4, .sequences = 4, .kv_free = Tokens{2'500}}};
  auto pool = sketch_pool({{3'000}, {2'000}, {900}, {600}});
  for (Candidate& candidate : pool) candidate.kv = candidate.weight;
  for (int round = 0; round < 20; ++round) {
    const auto choices = decide(policy, group, pool);
    ASSERT_EQ(choices.size(), 2U);
    EXPECT_EQ(choices[0].candidate, 1U);
    EXPECT_EQ(choices[0].worker, 1U);
    EXPECT_EQ(choices[1].candidate, 2U);
    EXPECT_EQ(choices[1].worker, 0U);
  }
  group.kv_free[1] = Tokens{3'000};
  EXPECT_EQ(decide(policy, group, pool).at(0).candidate, 0U);
}

// Law: once a request that no worker has the KV space for is late, the one that lacks least of it is kept for it.
TEST(BrFit, KeepsKvSpaceForALateRequest) {
  BrFit policy{{}};
  GroupSketch group{{.load = 100, .free_slots = 4, .sequences = 4, .kv_free = Tokens{2'900}},
                    {.load = 900, .free_slots = 4, .sequences = 4, .kv_free = Tokens{2'500}}};
  auto pool = sketch_pool({{3'000, 1, 127}, {50}, {60}});
  for (Candidate& candidate : pool) candidate.kv = candidate.weight;
  EXPECT_EQ(decide(policy, group, pool).at(0).worker, 0U);  // not late yet
  pool[0].passes = 128;
  for (const Choice& choice : decide(policy, group, pool)) EXPECT_EQ(choice.worker, 1U);
  group.kv_free[0] = Tokens{3'000};
  EXPECT_EQ(decide(policy, group, pool).at(0).candidate, 0U);
  EXPECT_EQ(decide(policy, group, pool).at(0).stage, Stage::overdue);
}

// Law: as many sequences as slots are saturation, though they are of fewer requests: the slots are then given by size.
TEST(BrFit, SequencesAreCountedNotRequests) {
  BrFit policy{{.horizon_weight = 0}};
  learn(policy, 100, 4'000);
  const GroupSketch group{{.load = 2'000, .free_slots = 2, .sequences = 2},
                          {.load = 2'000, .free_slots = 0, .sequences = 4}};
  const auto whole = decide(policy, group, sketch_pool({{100, 2}}));
  ASSERT_EQ(whole.size(), 1U);
  // Two of size 100 + 0.5 * 2000 each on one of two workers: 2200 below its target, then as far above, at weight 8.
  EXPECT_NEAR(whole[0].score, 1'100.0 * 1'100 - 8 * 1'100.0 * 1'100, 1);
}

// Law: the score is what the round's cost function says of the request alone, the look ahead included; full or not.
TEST(BrFit, TheScoreIsTheRoundsOwn) {
  BrFit policy{{}};
  learn(policy, 1'000, 300);
  for (std::uint64_t i = 0; i < 20; ++i) {
    policy.admitted({.id = RequestId{i}, .prompt = Tokens{5'000}, .generated = Tokens{290}}, GroupId{0},
                    WorkerId{0});  // about to end
  }
  const GroupSketch group{{.load = 106'000, .free_slots = 3, .sequences = 20},
                          {.load = 105'000, .free_slots = 3, .sequences = 20}};
  const auto pool = sketch_pool({{800}});
  const auto choices = decide(policy, group, pool, true);
  ASSERT_EQ(choices.size(), 1U);
  const std::vector<GroupView> groups{group.view()};
  const FleetView fleet{.groups = groups, .queued = {}};
  const auto score = [&](std::size_t worker) { return policy.score(fleet, GroupId{0}, worker, pool[0]); };
  EXPECT_EQ(choices[0].worker, 0U);  // the heavier one now
  EXPECT_DOUBLE_EQ(choices[0].score, score(0));
  EXPECT_DOUBLE_EQ(choices[0].runner_up->score, score(1));
  EXPECT_EQ(decide(policy, group, pool).at(0).worker, 0U);
  GroupSketch full = group;
  full.free_slots = {0, 0};
  const std::vector<GroupView> full_groups{full.view()};
  EXPECT_GT(policy.score({.groups = full_groups, .queued = {}}, GroupId{0}, 0, pool[0]),
            policy.score({.groups = full_groups, .queued = {}}, GroupId{0}, 1, pool[0]));
}

// Law: a wide request is placed whole, and a worker keeps its slots for it once it is late.
TEST(BrFit, KeepsSlotsForALateWideRequest) {
  BrFit policy{{}};
  const GroupSketch group{{.load = 1'000, .free_slots = 2, .sequences = 2},
                          {.load = 1'000, .free_slots = 1, .sequences = 3}};
  auto pool = sketch_pool({{100, 3, 500}, {100}, {100}, {100}});
  const auto choices = decide(policy, group, pool);
  ASSERT_EQ(choices.size(), 1U);
  EXPECT_EQ(choices[0].worker, 1U);
  const GroupSketch later{{.load = 1'000, .free_slots = 3, .sequences = 1},
                          {.load = 1'000, .free_slots = 0, .sequences = 4}};
  EXPECT_EQ(decide(policy, later, pool).at(0).candidate, 0U);
}

// Law: of several groups each is offered its share of the pool, the oldest part.
TEST(BrFit, AGroupIsOfferedItsShareOfThePool) {
  BrFit policy{{}};
  const GroupSketch here{{.load = 0, .free_slots = 2}, {.load = 0, .free_slots = 2}};
  const GroupSketch there{{.load = 0, .free_slots = 2}, {.load = 0, .free_slots = 2}};
  const std::vector<GroupView> groups{here.view(), there.view()};
  const auto pool = sketch_pool({{10}, {10}, {10}, {10}});
  std::vector<Choice> choices;
  Random random{1};
  policy.decide({.group = groups[0], .pool = pool, .groups = groups}, random, choices);
  ASSERT_EQ(choices.size(), 2U);
  for (const Choice& choice : choices) EXPECT_LT(choice.candidate, 2U);
}

TEST(BrFit, ExplainsWithTheNextBestWorker) {
  BrFit policy{{}};
  const GroupSketch group{{.load = 500, .free_slots = 3, .sequences = 3},
                          {.load = 100, .free_slots = 3, .sequences = 3}};
  const auto choices = decide(policy, group, sketch_pool({{100}}), true);
  ASSERT_EQ(choices.size(), 1U);
  ASSERT_TRUE(choices[0].runner_up);
  EXPECT_EQ(choices[0].worker, 1U);
  EXPECT_EQ(choices[0].runner_up->worker, 0U);
  EXPECT_LT(choices[0].runner_up->score, choices[0].score);
}

// Law: beside a giant that runs for very long the rest of the group does not starve for its worker's slots: all slots
// fill in the end, those of the giant's worker too.
TEST(BrFit, AGiantDoesNotKeepItsWorkerClosed) {
  Fleet fleet{{}, 2, 72};
  fleet.arrive({500'000, 30'000});
  for (int i = 0; i < 400; ++i) fleet.arrive({100, 200});
  double filled = 0;
  constexpr int kSteps = 4000;
  for (int i = 0; i < kSteps; ++i) {
    while (fleet.router.waiting() < 200) fleet.arrive({100, 200});
    fleet.step();
    if (i >= kSteps / 2) filled += static_cast<double>(fleet.router.ledger().live_leases());
  }
  EXPECT_GT(filled / (kSteps / 2), 0.9 * 144);
}

// Law: beside a giant and long answers on the other worker short requests are not left to wait for the giant's end.
TEST(BrFit, ShortRequestsDoNotWaitForAGiant) {
  Fleet fleet{{}, 2, 72};
  fleet.arrive({500'000, 30'000});
  fleet.step();
  for (int i = 0; i < 72; ++i) fleet.arrive({100, 20'000});
  for (int i = 0; i < 20; ++i) fleet.step();
  for (int i = 0; i < 80; ++i) fleet.arrive({100, 200});
  for (int i = 0; i < 2'000; ++i) fleet.step();
  for (const Fleet::Known& known : fleet.all) {
    ASSERT_GE(known.admitted, 0);
    EXPECT_LE(known.admitted - known.arrived, 1'200);
  }
}

// Law: a deep pool of answers that grow long behind short prompts is fitted at least as well as by order of arrival
// alone: the requests' later size counts.
TEST(BrFit, LongAnswersBehindShortPromptsCount) {
  const auto speed = [](double answer_share) {
    Fleet fleet{{.answer_share = answer_share}, 4, 16};
    Random draw{11};
    for (int i = 0; i < 12'000; ++i) {
      while (fleet.router.waiting() < 128) {
        const bool brief = draw.below(2) == 0;
        fleet.arrive(
            {brief ? 60 : 1'200, static_cast<std::int64_t>(brief ? 800 + draw.below(1'600) : 100 + draw.below(200))});
      }
      fleet.step();
    }
    return static_cast<double>(fleet.tokens) / fleet.time;
  };
  EXPECT_GT(speed(0.5), 0.999 * speed(0));
}

// Law: the same events give the same admissions.
TEST(BrFit, IsDeterministic) {
  const auto history = [] {
    Fleet fleet{{}, 8, 8};
    Random draw{3};
    for (int i = 0; i < 1'500; ++i) {
      for (std::uint64_t n = draw.below(4); n > 0; --n) {
        fleet.arrive(
            {static_cast<std::int64_t>(draw.exponential(2'000)), static_cast<std::int64_t>(1 + draw.below(60))});
      }
      fleet.step();
    }
    return fleet.history;
  };
  EXPECT_EQ(history(), history());
}

// Law: in saturation, nobody waits beyond the bound of lateness: admissions past a request stay within its place in
// line and eight units.
TEST(BrFit, LatenessIsBounded) {
  Fleet fleet{{}, 4, 8};
  Random draw{5};
  for (int i = 0; i < 4'000; ++i) {
    while (fleet.router.waiting() < 100) {
      fleet.arrive({draw.below(50) == 0 ? 60'000 : static_cast<std::int64_t>(draw.exponential(800)),
                    static_cast<std::int64_t>(1 + draw.below(100))});
    }
    fleet.step();
    const auto pool = fleet.router.pooled();
    for (std::size_t place = 0; place < pool.size(); ++place) {
      // Beyond eight units of max(16, 0.2 * 100) it takes the next slot; those forced with it come first.
      ASSERT_LE(pool[place].passes, static_cast<std::int64_t>(place) + 8 * 20 + 4 * 8);
    }
  }
  EXPECT_GT(fleet.finished, 1'000U);
}

}  // namespace
}  // namespace balanceroute
