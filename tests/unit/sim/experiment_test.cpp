// What an experiment refuses, with one message that names the thing, its value and what was expected.
#include "sim/experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "core/param_check.hpp"

namespace balanceroute::sim {
namespace {

using testing::HasSubstr;

constexpr auto kSegment = "examples/traces/azure2023_conv_segment.csv";

template <class Change>
std::string refusal(Change change) {
  SimulateParams params;
  params.trace = kSegment;
  change(params);
  const auto experiment = Experiment::prepare(params);
  return experiment ? "" : experiment.error();
}

TEST(Experiment, TakesTheBundledTraceAsItIs) {
  EXPECT_EQ(refusal([](SimulateParams&) {}), "");
}

TEST(Experiment, RefusesPoliciesThatCannotServeTheGroup) {
  EXPECT_THAT(refusal([](SimulateParams& p) { p.workers = {8, 1}; }),
              HasSubstr("policy br_fit evens out the waiting at a barrier, but group of --workers 1 has one worker"));
  EXPECT_EQ(refusal([](SimulateParams& p) { p.workers = {1}, p.policies = {"least_tokens"}; }), "");
}

TEST(Experiment, RefusesFleetsThatNoMachineCouldSimulate) {
  EXPECT_EQ(refusal([](SimulateParams& p) { p.workers = {65'536}, p.slots = 65'536; }),
            "--workers 65536 * --groups 1 * --slots 65536: expected at most 16777216 slots in all");
}

TEST(Experiment, RefusesStepsWithoutTime) {
  EXPECT_EQ(refusal([](SimulateParams& p) { p.step_time = {.fixed_ms = 0, .per_token_ms = 0}; }),
            "--fixed-ms = 0 and --per-token-ms = 0: expected a step to take some time");
}

TEST(Experiment, RefusesAnEmptySelection) {
  EXPECT_EQ(refusal([](SimulateParams& p) { p.min_output = 5000; }),
            std::string{kSegment} + ": no request has 5000 output tokens or more, as --min-output asks");
}

TEST(Experiment, RefusesTraceArrivalsWhereThereAreNone) {
  EXPECT_EQ(refusal([](SimulateParams& p) { p.limit = 1, p.arrivals = "trace"; }),
            std::string{kSegment} + ": has no arrival times that differ: expected --arrivals poisson");
}

TEST(Experiment, RefusesKvSpaceThatCannotHoldARequest) {
  const auto with = [](std::int64_t capacity, std::int64_t reserve, std::int64_t block) {
    return refusal([=](SimulateParams& p) {
      p.limit = 100;
      p.kv = {.capacity_tokens = capacity, .reserve_tokens = reserve, .block_size = block};
    });
  };
  const std::string least = ": expected at least 4036, for the largest request of " + std::string{kSegment};
  EXPECT_EQ(with(1000, 0, 1), "--kv-capacity-tokens = 1000" + least);
  EXPECT_EQ(with(4036, 0, 1), "");
  EXPECT_NE(with(4036, 4000, 1), "");  // its prompt does not fit beside the reserve
  EXPECT_NE(with(4036, 0, 64), "");    // 4096 in whole blocks
  EXPECT_EQ(with(4096, 0, 64), "");
  EXPECT_EQ(with(4096, 4096, 1), "--kv-reserve-tokens = 4096: expected less than --kv-capacity-tokens");
}

// Law: every setting of the model changes what comes out.
TEST(Experiment, EverySettingOfTheModelChangesTheRun) {
  const auto ttft = [](auto change) {
    SimulateParams params;
    params.trace = kSegment;
    params.limit = 400;
    params.policies = {"br_0"};
    params.kv.capacity_tokens = 80'000;
    params.prefill_instances = 2;
    change(params);
    return Experiment::prepare(params).value().run(1).front().result.ttft_ms.mean;
  };
  const double plain = ttft([](SimulateParams&) {});
  EXPECT_NE(ttft([](SimulateParams& p) { p.groups = 2; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.slots = 60; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.repeat = 2; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.warm_start = false; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.arrivals = "trace"; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.step_time.fixed_ms = 20; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.step_time.per_token_ms = 2e-4; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.step_time.step_time = "slow"; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.tokens_per_step = 1.5; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.kv.capacity_tokens = 60'000; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.kv.reserve_tokens = 20'000; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.kv.block_size = 1024; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.load_model = {.kind = "paged", .block_tokens = 1024}; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.load_model = {.kind = "windowed", .window_tokens = 500}; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.load_model = {.kind = "windowed", .window_tokens = 500, .full_every = 4}; }),
            ttft([](SimulateParams& p) { p.load_model = {.kind = "windowed", .window_tokens = 500}; }));
  EXPECT_NE(ttft([](SimulateParams& p) { p.load_model = {.kind = "affine", .scale = 2}; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.load_model = {.kind = "affine", .constant_tokens = 900}; }), plain);
  EXPECT_EQ(
      ttft([](SimulateParams& p) { p.load_model = {.kind = "fitted", .per_token_ms = 2e-4, .per_sequence_ms = 0.18}; }),
      ttft([](SimulateParams& p) { p.load_model = {.kind = "affine", .constant_tokens = 900}; }));
  EXPECT_NE(ttft([](SimulateParams& p) { p.admission_delay_ms = 5; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.transfer_per_token_ms = 0.01; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.prefill_instances = 3; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.prefill_ms = 30; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.prefill_per_token_ms = 0.1; }), plain);
  EXPECT_NE(ttft([](SimulateParams& p) { p.prefill_kv_tokens = 100; }), plain);
  const auto preempting = [](SimulateParams& p) { p.kv.capacity_tokens = 20'000, p.kv.reserve_tokens = 0; };
  EXPECT_NE(ttft([&](SimulateParams& p) { preempting(p), p.recompute_per_token_ms = 1; }), ttft(preempting));
}

// Law: a named step time is the numbers it stands for, and either of them may be set beside it.
TEST(Experiment, StepTimesHaveNames) {
  const auto line = [](const engine::StepTimeParams& params) {
    return std::pair{params.line().fixed_ms, params.line().per_token_ms};
  };
  EXPECT_EQ(line({}), (std::pair{9.775, 1.00525e-4}));
  EXPECT_EQ(line({.step_time = "slow"}), (std::pair{60.0, 4e-5}));
  EXPECT_EQ(line({.step_time = "slow", .fixed_ms = 0}), (std::pair{0.0, 4e-5}));
  EXPECT_EQ(line({.per_token_ms = 0}), (std::pair{9.775, 0.0}));
}

// Law: br_fit is told how long steps are, unless it was set otherwise.
TEST(Experiment, TellsPoliciesHowLongStepsAre) {
  SimulateParams params;
  params.trace = kSegment;
  params.limit = 50;
  params.step_time = {.fixed_ms = 60, .per_token_ms = 4e-5};
  const auto told = [&] { return Experiment::prepare(params)->variants()[0].policy.br_fit.fixed_step_tokens; };
  EXPECT_EQ(told(), 1'500'000);
  params.step_time_table = testing::TempDir() + "experiment_step_table.csv";
  std::ofstream{params.step_time_table} << "tokens,ms\n0,10\n1000,11\n100000,20\n";
  EXPECT_EQ(told(), 100'000);
  params.policy_settings.br_fit.fixed_step_tokens = 7;
  EXPECT_EQ(told(), 7);
}

// Law: limit and least output choose the requests; what is chosen arrives from 0 on.
TEST(Experiment, ChoosesRequests) {
  SimulateParams params;
  params.trace = kSegment;
  params.limit = 100;
  EXPECT_EQ(Experiment::prepare(params)->trace().requests.size(), 100U);
  params.min_output = 200;
  const auto few = Experiment::prepare(params).value();
  EXPECT_LT(few.trace().requests.size(), 100U);
  EXPECT_EQ(few.trace().requests.front().arrival.count(), 0);
  for (const auto& request : few.trace().requests) EXPECT_GE(request.output, Tokens{200});
}

// Law: one run for each combination, by workers, then load, then policy, then seed.
TEST(Experiment, MakesEveryCombinationOnceInOrder) {
  SimulateParams params;
  params.trace = kSegment;
  params.limit = 50;
  params.policies = {"least_tokens", "br_0"};
  params.workers = {2, 4};
  params.loads = {0.5, 1};
  params.seeds = {1, 2};
  const auto experiment = Experiment::prepare(params).value();
  std::size_t told = 0;
  const auto runs = experiment.run(2, [&](std::size_t finished, std::size_t all) {
    EXPECT_EQ(finished, ++told);
    EXPECT_EQ(all, 16U);
  });
  EXPECT_EQ(told, 16U);
  ASSERT_EQ(runs.size(), 16U);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    EXPECT_EQ(runs[i].workers, i / 8 == 0 ? 2U : 4U);
    EXPECT_EQ(runs[i].load, i / 4 % 2 == 0 ? 0.5 : 1);
    EXPECT_EQ(runs[i].variant, i / 2 % 2);
    EXPECT_EQ(runs[i].seed, i % 2 == 0 ? 1U : 2U);
  }
}

// Law: every setting keeps to its range by itself.
TEST(SimulateParams, NameTheSettingThatIsOutOfRange) {
  const auto fault = [](auto change) {
    SimulateParams params;
    params.trace = kSegment;
    change(params);
    return first_fault(params).value_or("");
  };
  EXPECT_EQ(fault([](SimulateParams&) {}), "");
  EXPECT_EQ(fault([](SimulateParams& p) { p.slots = 0; }), "slots = 0: expected 1..65536");
  EXPECT_EQ(fault([](SimulateParams& p) { p.loads = {0}; }), "load = 0: expected 0.001..100");
  EXPECT_EQ(fault([](SimulateParams& p) { p.policy_settings.r_max = 0; }), "r_max = 0: expected 1..1024 or auto");
  EXPECT_THAT(fault([](SimulateParams& p) { p.policies = {"best"}; }), HasSubstr("policy = best: expected one of"));
}

}  // namespace
}  // namespace balanceroute::sim
