#include "policy/br_h/br_h.hpp"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "support/group_sketch.hpp"

namespace balanceroute {
namespace {

// The truth about a few requests.
class Script final : public LengthOracle {
 public:
  explicit Script(std::map<std::uint64_t, std::int64_t> outputs) : outputs_{std::move(outputs)} {}
  [[nodiscard]] Tokens output_of(RequestId request) const override { return Tokens{outputs_.at(request.value())}; }

 private:
  std::map<std::uint64_t, std::int64_t> outputs_;
};

PolicyParams oracle_params() {
  PolicyParams params{.name = "br_h", .greedy_threshold = 0, .predictor = {.name = "oracle"}};
  params.horizon_steps = 20;
  params.beta = 2;
  params.gamma = 1;
  params.growth = "false";
  return params;
}

// Two workers of two slots: worker 0 runs request 0 of 1000 tokens, worker 1 request 1 of 900; a request waits.
struct Duel {
  Duel(const PolicyParams& params, std::int64_t output_0, std::int64_t output_1, std::int64_t waiting = 100)
      : truth{{{0, output_0}, {1, output_1}, {2, 50}}},
        router{"fleet", make_policy(params, {.lengths = &truth}).value(), 1},
        group{router.add_group("group")} {
    for (std::int32_t rank = 0; rank < 2; ++rank)
      workers.push_back(router.add_worker(group, "http://h", rank, 2).value());
    leases.push_back(router.adopt(workers[0], {.id = RequestId{0}, .prompt = Tokens{1000}}).value());
    leases.push_back(router.adopt(workers[1], {.id = RequestId{1}, .prompt = Tokens{900}}).value());
    EXPECT_TRUE(router.submit({.id = RequestId{2}, .prompt = Tokens{waiting}}));
  }

  // Score of the waiting request on each worker.
  std::pair<double, double> scores() {
    const auto all = router.explain(group, router.pooled().front().request);
    return {all[0].score, all[1].score};
  }

  Script truth;
  Router router;
  GroupId group;
  std::vector<WorkerId> workers;
  std::vector<Lease> leases;
};

// Law: with what is known to end soon the score says where there will be room: by hand, F = sum over h = 0 .. 20 of
// D - 2 * (D - m_h)+. Worker 0 is empty from step 5 on, worker 1 holds 900 all along.
TEST(BrH, ScoresTheWholeHorizon) {
  Duel duel{oracle_params(), 5, 1000};
  const auto [on_0, on_1] = duel.scores();
  EXPECT_EQ(on_0, 21 * 100 - 2 * 5 * 100);   // no room for 5 steps, then 900
  EXPECT_EQ(on_1, 21 * 100 - 2 * 16 * 100);  // 100 of room for 5 steps, then it is the largest
}

// Law: every setting of the look ahead changes scores.
TEST(BrH, EverySettingCounts) {
  const auto scores = [](auto change) {
    PolicyParams params = oracle_params();
    change(params);
    return Duel{params, 5, 1000}.scores();
  };
  const auto as_it_is = scores([](PolicyParams&) {});
  EXPECT_EQ(scores([](PolicyParams& p) { p.horizon_steps = 0; }), (std::pair{-100.0, 100.0}));
  EXPECT_EQ(scores([](PolicyParams& p) { p.alpha = 2; }).first, as_it_is.first + 2100);
  EXPECT_EQ(scores([](PolicyParams& p) { p.beta = 3; }).first, as_it_is.first - 500);
  EXPECT_EQ(scores([](PolicyParams& p) { p.gamma = 0; }), (std::pair{-100.0, 100.0}));
  EXPECT_NE(scores([](PolicyParams& p) { p.growth = "true"; }), as_it_is);
  // A predictor that has seen nothing expects everything to stay.
  EXPECT_EQ(scores([](PolicyParams& p) { p.predictor.name = "survival"; }), (std::pair{-2100.0, 2100.0}));
}

// Halves of a chance, which only the survival projection can tell from a certain middle.
class Half final : public Predictor {
 public:
  [[nodiscard]] std::string_view name() const override { return "half"; }
  void ended(const Request&, Tokens, LeaseEnd) override {}
  [[nodiscard]] bool informed() const override { return true; }
  [[nodiscard]] bool wants_renewal() const override { return false; }
  void renew(std::span<const LifeSpan>) override {}
  [[nodiscard]] Prediction predict(const Request&, Tokens, Steps) const override {
    return {.finish_chance = 0.5, .mean_remaining = 1};
  }
  void survival(const Request&, Tokens, std::span<std::uint32_t> chances) const override {
    std::ranges::fill(chances, kCertain / 2);
    chances.front() = kCertain;
  }
};

// Law: by points a request counts in full until its expected end, by survival with its chance all along.
TEST(BrH, ProjectsByPointsOrByChances) {
  const auto project = [](ProjectionShape shape) {
    Projection projection{{.horizon = Steps{4}, .refresh = Steps{2}, .shape = shape, .growth = false},
                          std::make_unique<Half>()};
    projection.admitted({.id = RequestId{1}, .prompt = Tokens{100}}, GroupId{0}, WorkerId{0});
    std::vector<Tokens> loads(5);
    projection.project(GroupId{0}, WorkerId{0}, Tokens{100}, loads);
    std::vector<std::int64_t> counts;
    for (const Tokens load : loads) counts.push_back(load.count());
    return counts;
  };
  EXPECT_EQ(project(ProjectionShape::point), (std::vector<std::int64_t>{100, 100, 100, 0, 0}));  // 2.5, rounded
  EXPECT_EQ(project(ProjectionShape::survival), (std::vector<std::int64_t>{100, 50, 50, 50, 50}));
}

// Law: an expected end comes a step nearer with each step, and predictions are renewed every refresh steps.
TEST(BrH, PredictionsMoveUpUntilTheyAreRenewed) {
  Projection projection{{.horizon = Steps{4}, .refresh = Steps{3}, .shape = ProjectionShape::point, .growth = false},
                        std::make_unique<Half>()};
  projection.admitted({.id = RequestId{1}, .prompt = Tokens{100}}, GroupId{0}, WorkerId{0});
  projection.aged(RequestId{1}, Tokens{0});
  std::vector<std::int64_t> steps_in_sight;
  for (int i = 0; i < 4; ++i) {
    std::vector<Tokens> loads(5);
    projection.project(GroupId{0}, WorkerId{0}, Tokens{100}, loads);
    steps_in_sight.push_back(std::ranges::count_if(loads, [](Tokens load) { return load > Tokens{0}; }));
    projection.stepped(GroupId{0}, Steps{1});
  }
  EXPECT_EQ(steps_in_sight, (std::vector<std::int64_t>{3, 2, 1, 3}));
}

// Law: what ends soon makes room: the waiting request goes where it will not be the largest.
TEST(BrH, GivesARequestToTheWorkerThatWillHaveRoom) {
  for (const bool first_ends : {true, false}) {
    Duel duel{oracle_params(), first_ends ? 2 : 1000, first_ends ? 1000 : 2, 120};
    duel.router.set_policy(make_policy(oracle_params(), {.lengths = &duel.truth}).value());
    const auto scores = duel.scores();
    EXPECT_EQ(scores.first > scores.second, first_ends);
    const auto admissions = duel.router.round(duel.group, true);
    ASSERT_EQ(admissions.size(), 1U);
    ASSERT_TRUE(admissions.front().runner_up);
  }
}

// Law: its predictions are held against what happens.
TEST(BrH, ReportsHowWellItPredicts) {
  Duel duel{oracle_params(), 5, 1000};
  EXPECT_EQ(duel.router.policy().prediction_report()->predictor, "oracle");
  EXPECT_EQ(duel.router.policy().prediction_report()->calibration.count(), 0);
  duel.router.advance(duel.group, Steps{5});
  duel.leases[0].finish(Tokens{5});
  duel.router.advance(duel.group, Steps{40});
  const PredictionReport report = *duel.router.policy().prediction_report();
  EXPECT_EQ(report.horizon, Steps{20});
  EXPECT_EQ(report.calibration.count(), 2);
  EXPECT_EQ(report.calibration.mean_happened(), 0.5);
  EXPECT_EQ(report.calibration.brier_score(), 0);
  EXPECT_FALSE(make_policy({.name = "br_0"}).value()->prediction_report());
}

// Law: what is said before anything is known is no prediction: it is not held against what happens.
TEST(BrH, CountsNoPredictionThatKnewNothing) {
  PolicyParams params = oracle_params();
  params.predictor = {.name = "survival", .min_requests = 1};
  Duel duel{params, 5, 1000};
  duel.router.advance(duel.group, Steps{5});
  duel.leases[0].finish(Tokens{5});
  EXPECT_EQ(duel.router.policy().prediction_report()->calibration.count(), 0);
  duel.router.advance(duel.group, Steps{40});  // the other one was predicted when an end was known, and is past it
  EXPECT_EQ(duel.router.policy().prediction_report()->calibration.count(), 0);
  duel.router.advance(duel.group, Steps{40});
  EXPECT_EQ(duel.router.policy().prediction_report()->calibration.count(), 1);
}

// Law: a set never takes more KV space than its worker has left, in either stage.
TEST(TwoStage, KeepsToTheKvSpace) {
  for (const std::int64_t threshold : {0, 100}) {
    GroupSketch group{{.load = 0, .free_slots = 3, .kv_free = Tokens{250}}, {.load = 900, .free_slots = 1}};
    std::vector<Candidate> pool = sketch_pool({{.prompt = 100}, {.prompt = 110}, {.prompt = 120}, {.prompt = 130}});
    for (Candidate& candidate : pool) candidate.kv = candidate.weight;
    const auto policy = make_policy({.name = "br_0", .greedy_threshold = threshold}).value();
    Random random{1};
    std::vector<Choice> choices;
    static_cast<PooledPolicy&>(*policy).decide({.group = group.view(), .pool = pool}, random, choices);
    Tokens taken{0};
    for (const Choice& choice : choices) taken += choice.worker == 0 ? pool[choice.candidate].kv : Tokens{0};
    EXPECT_LE(taken, Tokens{250});
    EXPECT_EQ(choices.size(), 3U);
  }
}

}  // namespace
}  // namespace balanceroute
