// What an experiment promises: the same bytes on any number of threads, common chance, laws of queueing that hold.
#include "sim/experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "policy/registry.hpp"
#include "sim/report.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::sim {
namespace {

constexpr auto kSegment = "examples/traces/azure2023_conv_segment.csv";

SimulateParams params_of_segment() {
  SimulateParams params;
  params.trace = kSegment;
  return params;
}

std::string reports(const SimulateParams& params, std::size_t threads) {
  const auto experiment = Experiment::prepare(params).value();
  const auto runs = experiment.run(threads);
  return table_report(experiment, runs) + json_report(experiment, runs) + html_report(experiment, runs);
}

// Law: the same seed gives the same bytes on 1 and on 2 threads; another seed gives others.
TEST(Experiment, SameBytesOnOneAndTwoThreads) {
  SimulateParams params = params_of_segment();
  params.limit = 300;
  params.policies.clear();
  for (const std::string_view policy : policy_names()) params.policies.emplace_back(policy);
  params.workers = {2, 8};
  params.loads = {0.8, 1.2};
  params.predictors = {"survival", "oracle"};
  params.html = "page.html";
  params.seeds = {1, 2};
  const std::string alone = reports(params, 1);
  EXPECT_EQ(alone, reports(params, 2));
  params.seeds = {1, 3};
  EXPECT_NE(alone, reports(params, 2));
}

// Law: whatever combination a run is part of, its result is that of the run alone.
TEST(Experiment, RunsDoNotDependOnTheirCompany) {
  SimulateParams params = params_of_segment();
  params.policies = {"least_tokens", "br_0"};
  params.loads = {0.8, 1.2};
  params.seeds = {1, 2};
  const auto many = Experiment::prepare(params).value().run(2);
  params.policies = {"br_0"};
  params.loads = {1.2};
  params.seeds = {2};
  const auto alone = Experiment::prepare(params).value().run(1);
  ASSERT_EQ(alone.size(), 1U);
  const auto& same = many.back();
  ASSERT_EQ(same.variant, 1U);
  EXPECT_EQ(same.result.throughput_tokens_per_s, alone.front().result.throughput_tokens_per_s);
  EXPECT_EQ(same.result.pool_wait_ms.p99, alone.front().result.pool_wait_ms.p99);
}

RunResult only_result(const SimulateParams& params) {
  return Experiment::prepare(params).value().run(1).front().result;
}

double rate_per_second(const SimulateParams& params, const Experiment& experiment) {
  const Fleet fleet{.groups = 1,
                    .workers = static_cast<std::size_t>(params.workers.front()),
                    .slots = static_cast<std::int32_t>(params.slots),
                    .step_time = params.step_time.line(),
                    .tokens_per_step = params.tokens_per_step};
  return params.loads.front() * trace::capacity_per_second(experiment.lengths(), fleet.shape());
}

// Law: a load is the share of busy slots where no step depends on it, whatever the policy: it is true load.
TEST(TrueLoad, IsTheShareOfBusySlotsWhenStepsAreAllAlike) {
  SimulateParams params = params_of_segment();
  params.policies = {"least_tokens"};
  params.step_time = {.fixed_ms = 15, .per_token_ms = 0};
  params.repeat = 6;
  for (const auto& [load, tokens_per_step] : {std::pair{0.8, 1.0}, {0.95, 1.0}, {0.8, 3.5}}) {
    params.loads = {load};
    params.tokens_per_step = tokens_per_step;
    const RunResult result = only_result(params);
    EXPECT_FALSE(result.non_stationary);
    EXPECT_NEAR(result.busy_fraction / load, 1, 0.03) << load << " at " << tokens_per_step;
  }
}

// A trace where a busy slot is far from a mean request: one in ten has a short prompt and a long answer.
std::string trace_of_unlike_requests() {
  const std::string path = testing::TempDir() + "unlike_requests.csv";
  std::ofstream file{path};
  file << "num_prefill_tokens,num_decode_tokens,num_total_tokens,pd_ratio\n";
  for (int i = 0; i < 2000; ++i) file << (i % 10 == 0 ? "100,1000,1100,0.1\n" : "3000,50,3050,60\n");
  return path;
}

// Law: where steps grow with load too, a group that is always even (one worker) is as busy as the capacity formula
// says, by its length-biased weight of a busy slot: here 1352 tokens, where the means of prompts and half outputs make
// 2783.
TEST(TrueLoad, IsThatOfPerfectlyBalancedWorkers) {
  SimulateParams params;
  params.trace = trace_of_unlike_requests();
  params.policies = {"least_tokens"};
  params.workers = {1};
  params.slots = 576;
  params.step_time = {.fixed_ms = 10, .per_token_ms = 2e-5};
  params.repeat = 25;
  for (const double load : {0.8, 0.95}) {
    params.loads = {load};
    const auto experiment = Experiment::prepare(params).value();
    EXPECT_NEAR(experiment.lengths().busy_slot_weight, 1352, 1);
    const RunResult result = experiment.run(1).front().result;
    const double active = trace::balanced_active(experiment.lengths(),
                                                 {.workers = 1,
                                                  .slots = params.slots,
                                                  .fixed_ms = params.step_time.line().fixed_ms,
                                                  .per_token_ms = params.step_time.line().per_token_ms},
                                                 rate_per_second(params, experiment));
    EXPECT_FALSE(result.non_stationary);
    EXPECT_NEAR(result.active_mean / active, 1, 0.03) << load;
  }
}

// Law (Little): sequences in the slots = tokens a second * seconds a token; and what comes in goes out.
TEST(Laws, OfLittleHoldForEveryPolicy) {
  SimulateParams params = params_of_segment();
  params.loads = {0.8};
  params.repeat = 6;
  for (const std::string_view policy : policy_names()) {
    params.policies = {std::string{policy}};
    const auto experiment = Experiment::prepare(params).value();
    const RunResult result = experiment.run(1).front().result;
    EXPECT_NEAR(result.active_mean / (result.throughput_tokens_per_s * result.tpot_ms.mean / 1e3), 1, 0.01) << policy;
    const double arriving = rate_per_second(params, experiment) * experiment.lengths().mean_output;
    EXPECT_NEAR(result.throughput_tokens_per_s / arriving, 1, 0.03) << policy;
  }
}

// Law: policies share chance. Where placement cannot matter (no step depends on load, slots for all) each gives the
// very same run, but for the one that may hold a request back; another seed gives another.
TEST(CommonChance, PoliciesSeeTheSameRequestsArrivalsAndStart) {
  SimulateParams params = params_of_segment();
  params.step_time = {.fixed_ms = 15, .per_token_ms = 0};
  params.slots = 500;
  params.loads = {0.2};
  params.repeat = 2;
  params.policies.clear();
  for (const std::string_view policy : policy_names()) {
    if (policy != "br_fit") params.policies.emplace_back(policy);
  }
  const auto runs = Experiment::prepare(params).value().run(2);
  const RunResult& first = runs.front().result;
  for (const auto& run : runs) {
    EXPECT_EQ(run.result.steps, first.steps) << params.policies[run.variant];
    EXPECT_EQ(run.result.ttft_ms.mean, first.ttft_ms.mean) << params.policies[run.variant];
    EXPECT_EQ(run.result.ttft_ms.max, first.ttft_ms.max) << params.policies[run.variant];
    EXPECT_EQ(run.result.pool_wait_ms.count, first.pool_wait_ms.count) << params.policies[run.variant];
    EXPECT_EQ(run.result.active_mean, first.active_mean) << params.policies[run.variant];
    EXPECT_EQ(run.result.throughput_tokens_per_s, first.throughput_tokens_per_s) << params.policies[run.variant];
  }
  params.seeds = {2};
  params.policies = {"least_tokens"};
  EXPECT_NE(only_result(params).ttft_ms.mean, first.ttft_ms.mean);
}

// Law: a warm start is the stationary state: from the first step on a full group stays full, and a cold one has to
// fill.
TEST(WarmStart, IsStationaryFromTheStart) {
  SimulateParams params = params_of_segment();
  params.policies = {"br_0"};
  params.loads = {1.05};
  EXPECT_FALSE(only_result(params).non_stationary);
  EXPECT_GT(only_result(params).busy_fraction, 0.99);
  params.warm_start = false;
  params.limit = 1500;
  EXPECT_TRUE(only_result(params).non_stationary);
}

}  // namespace
}  // namespace balanceroute::sim
