// What an experiment promises: the same bytes on any number of threads, common chance, laws of queueing that hold.
#include "sim/experiment.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "sim/report.hpp"

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
  return table_report(experiment, runs) + json_report(experiment, runs);
}

// Law: the same seed gives the same bytes on 1 and on 2 threads; another seed gives others.
TEST(Experiment, SameBytesOnOneAndTwoThreads) {
  SimulateParams params = params_of_segment();
  params.policies = {"round_robin", "join_shortest_queue", "least_tokens", "br_0"};
  params.workers = {2, 8};
  params.loads = {0.8, 1.2};
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
  ASSERT_EQ(same.policy, "br_0");
  EXPECT_EQ(same.result.throughput_tokens_per_s, alone.front().result.throughput_tokens_per_s);
  EXPECT_EQ(same.result.pool_wait_ms.p99, alone.front().result.pool_wait_ms.p99);
}

}  // namespace
}  // namespace balanceroute::sim
