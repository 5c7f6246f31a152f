#include "policy/registry.hpp"

#include <gtest/gtest.h>

#include <filesystem>

#include "policy/two_stage/settings.hpp"

namespace balanceroute {
namespace {

std::string fault_of(const PolicyParams& params) {
  const auto made = make_policy(params);
  return made ? "" : made.error();
}

// Law: a policy has one name: in the list, on itself and of its folder.
TEST(Registry, EveryPolicyAnswersToItsName) {
  for (const std::string_view name : policy_names()) {
    const auto policy = make_policy({.name = std::string{name}});
    ASSERT_TRUE(policy) << name;
    EXPECT_EQ((*policy)->name(), name);
    EXPECT_FALSE((*policy)->score_meaning().empty());
    EXPECT_TRUE(std::filesystem::is_directory(std::filesystem::path{"src/policy"} / name)) << name;
  }
}

TEST(Registry, BaselinesBindAtOnceAndBrFromThePool) {
  EXPECT_EQ(make_policy({.name = "least_tokens"}).value()->binding(), Binding::immediate);
  EXPECT_EQ(make_policy({.name = "br_0_bypass"}).value()->binding(), Binding::immediate);
  EXPECT_EQ(make_policy({.name = "br_0"}).value()->binding(), Binding::pooled);
}

TEST(Registry, FaultsNameTheSetting) {
  EXPECT_EQ(
      fault_of({.name = "best"}),
      "policy.name = best: expected one of auto, random, round_robin, power_of_two, join_shortest_queue, least_tokens, "
      "br_0, br_0_bypass, br_h, br_fit");
  EXPECT_EQ(fault_of({.preset = "best"}), "policy.preset = best: expected one of default, paper, repo");
  EXPECT_EQ(fault_of({.r_max = 1025}), "policy.r_max = 1025: expected 1..1024 or auto");
  EXPECT_EQ(fault_of({.r_max = 0}), "policy.r_max = 0: expected 1..1024 or auto");
  EXPECT_EQ(fault_of({.greedy_threshold = -2}), "policy.greedy_threshold = -2: expected 0..1000000 or auto");
  EXPECT_EQ(fault_of({.worker_order = "size"}), "policy.worker_order = size: expected one of auto, load, capacity");
  EXPECT_EQ(fault_of({.stage1_window = 0}), "policy.stage1_window = 0: expected 1..65536");
  EXPECT_EQ(fault_of({.max_passes = 0}), "policy.max_passes = 0: expected 1..1000000");
  EXPECT_EQ(fault_of({.horizon_steps = 513}), "policy.horizon_steps = 513: expected 0..512");
  EXPECT_EQ(fault_of({.beta = -3}), "policy.beta = -3: expected 0..1e+06 or auto");
  EXPECT_EQ(fault_of({.gamma = 2}), "policy.gamma = 2: expected 0..1");
  EXPECT_EQ(fault_of({.projection = "mean"}), "policy.projection = mean: expected one of auto, point, survival");
  EXPECT_EQ(fault_of({.growth = "maybe"}), "policy.growth = maybe: expected one of auto, true, false");
  EXPECT_EQ(fault_of({.refresh_steps = 0}), "policy.refresh_steps = 0: expected 1..128");
  EXPECT_EQ(fault_of({.predictor = {.min_requests = 0}}), "policy.prediction.min_requests = 0: expected 1..1000000");
  EXPECT_EQ(fault_of({.br_fit = {.window = 0}}), "policy.br_fit.window = 0: expected 1..65536");
}

TEST(Registry, SettingsReachThePolicy) {
  const TwoStageSettings settings = two_stage_settings(
      {.r_max = 3, .greedy_threshold = 11, .worker_order = "capacity", .stage1_window = 5, .max_passes = 6});
  EXPECT_EQ(settings.r_max, 3U);
  EXPECT_EQ(settings.greedy_threshold, 11);
  EXPECT_EQ(settings.worker_order, WorkerOrder::capacity);
  EXPECT_EQ(settings.stage1_window, 5U);
  EXPECT_EQ(settings.max_passes, 6);
  EXPECT_FALSE(two_stage_settings({}).greedy_threshold);
  EXPECT_EQ(auto_greedy_threshold(1), 1);
  EXPECT_EQ(auto_greedy_threshold(2), 1);
  EXPECT_EQ(auto_greedy_threshold(7), 4);
  EXPECT_EQ(two_stage_settings({}).worker_order, WorkerOrder::load);
}

// Law: a preset says what is auto, and what is given overrides it.
TEST(Registry, PresetsFillInWhatIsAuto) {
  const TwoStageSettings paper = two_stage_settings({.preset = "paper"});
  EXPECT_EQ(paper.r_max, 4U);
  EXPECT_EQ(paper.greedy_threshold, 7);
  EXPECT_EQ(paper.worker_order, WorkerOrder::capacity);
  const PolicyParams full = with_preset({.preset = "paper", .growth = "true"});
  EXPECT_EQ(full.projection, "point");
  EXPECT_EQ(full.growth, "true");
  EXPECT_EQ(two_stage_settings({.preset = "repo"}).r_max, 16U);
  EXPECT_EQ(two_stage_settings({.preset = "repo", .r_max = 5}).r_max, 5U);
  const PolicyParams standard = with_preset({});
  EXPECT_EQ(standard.r_max, 4);
  EXPECT_EQ(standard.projection, "survival");
  EXPECT_EQ(standard.growth, "true");
  EXPECT_EQ(standard.alpha, 1);
  EXPECT_EQ(standard.beta, 43);
}

// Law: weights that the one-step score fixes are refused, unless they are meant for another policy of a comparison.
TEST(Registry, WeightsAreRefusedUnderTheOneStepScore) {
  EXPECT_EQ(fault_of({.name = "br_0", .beta = 5}),
            "policy.beta = 5: expected auto under br_0, where it is the number of workers");
  EXPECT_EQ(fault_of({.name = "br_0", .alpha = 2}), "policy.alpha = 2: expected auto under br_0, where it is 1");
  EXPECT_EQ(fault_of({.name = "br_h", .beta = 5}), "");
  const std::vector<std::string> with_br_h{"least_tokens", "br_0", "br_h"};
  const std::vector<std::string> without{"least_tokens", "br_0"};
  EXPECT_EQ(fault_of(settings_for("br_0", {.beta = 5}, with_br_h)), "");
  EXPECT_NE(fault_of(settings_for("br_0", {.beta = 5}, without)), "");
  EXPECT_EQ(settings_for("br_h", {.beta = 5}, with_br_h).beta, 5);
}

TEST(Registry, TheOracleNeedsTheTruth) {
  EXPECT_EQ(
      fault_of({.name = "br_h", .predictor = {.name = "oracle"}}),
      "predictor.name = oracle: it reads the lengths of answers from a trace, which only a simulation has; expected "
      "one of survival, exact_match");
}

// Law: a router that was not told a policy uses ours where workers wait for each other, and evens out tokens where they
// do not; a policy that was named stays.
TEST(PolicyChoice, AutoLooksAtWhetherWorkersWait) {
  EXPECT_EQ(PolicyParams{}.name, "auto");
  EXPECT_EQ(chosen_for({}, true).name, "br_fit");
  EXPECT_EQ(chosen_for({}, false).name, "least_tokens");
  EXPECT_EQ(chosen_for({.name = "br_0"}, false).name, "br_0");
  EXPECT_TRUE(validate_for_group({}, "a", 1, true));
  EXPECT_EQ(fault_of({}), "policy auto: expected the name of one policy");
}

// Law: a policy against waiting at a barrier is refused where nobody waits, and the message says what to use.
TEST(Registry, BrPoliciesNeedABarrier) {
  EXPECT_TRUE(validate_for_group({.name = "br_0"}, "a", 2, true));
  EXPECT_TRUE(validate_for_group({.name = "least_tokens"}, "a", 1, false));
  EXPECT_EQ(validate_for_group({.name = "br_0"}, "a", 1, true).error(),
            "policy br_0 evens out the waiting at a barrier, but group a has one worker: use least_tokens");
  EXPECT_EQ(validate_for_group({.name = "br_fit"}, "a", 1, true).error(),
            "policy br_fit evens out the waiting at a barrier, but group a has one worker: use least_tokens");
  EXPECT_EQ(validate_for_group({.name = "br_0_bypass"}, "a", 1, true).error(),
            "policy br_0_bypass evens out the waiting at a barrier, but group a has one worker: use least_tokens");
  EXPECT_EQ(validate_for_group({.name = "br_0"}, "a", 8, false).error(),
            "policy br_0 evens out the waiting at a barrier, but group a has no barrier: use least_tokens");
}

}  // namespace
}  // namespace balanceroute
