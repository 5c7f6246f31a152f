// Laws of the load figures: the busy-slot weight, capacity, and the stationary law that both rest on.
#include "trace/statistics.hpp"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <map>
#include <utility>
#include <vector>

#include "trace/reader.hpp"
#include "trace/stationary_law.hpp"

namespace balanceroute::trace {
namespace {

using std::chrono::seconds;

std::vector<TraceRequest> pair_of_requests() {
  return {{seconds{0}, Tokens{10}, Tokens{1}, {}}, {seconds{4}, Tokens{20}, Tokens{3}, {}}};
}

// Law: the weight averages over token-steps. Here they read 10 | 20, 21, 22.
TEST(LengthStatistics, WeightAveragesOverTokenSteps) {
  const auto lengths = length_statistics(pair_of_requests());
  EXPECT_EQ(lengths.requests, 2);
  EXPECT_DOUBLE_EQ(lengths.mean_prompt, 15);
  EXPECT_DOUBLE_EQ(lengths.mean_output, 2);
  EXPECT_DOUBLE_EQ(lengths.mean_squared_output, 5);
  EXPECT_DOUBLE_EQ(lengths.busy_slot_weight, (10 + 20 + 21 + 22) / 4.0);
}

// Law: the weight is that of the load model, step by step; KV space goes by whole blocks whatever the model.
TEST(LengthStatistics, WeightFollowsTheLoadModel) {
  const auto requests = pair_of_requests();
  const auto windowed = length_statistics(requests, LoadModel::windowed(Tokens{20}, 2), Tokens{4});
  EXPECT_DOUBLE_EQ(windowed.busy_slot_weight, (10 + 20 + 20 + 21) / 4.0);
  EXPECT_DOUBLE_EQ(windowed.busy_slot_kv, (12 + 20 + 24 + 24) / 4.0);
  EXPECT_DOUBLE_EQ(length_statistics(requests, LoadModel::paged(Tokens{8})).busy_slot_weight, (16 + 24 * 3) / 4.0);
  EXPECT_DOUBLE_EQ(length_statistics(requests, LoadModel::affine(2, Tokens{5})).busy_slot_weight,
                   (25 + 45 + 47 + 49) / 4.0);
}

TEST(LengthStatistics, NoRequestsHaveNoFigures) {
  const auto lengths = length_statistics({});
  EXPECT_EQ(lengths.requests, 0);
  EXPECT_EQ(lengths.busy_slot_weight, 0);
  EXPECT_EQ(arrival_rate({}), 0);
}

TEST(ArrivalRate, CountsGapsNotRequests) {
  EXPECT_DOUBLE_EQ(arrival_rate(pair_of_requests()), 0.25);
  auto together = pair_of_requests();
  together[1].arrival = seconds{0};
  EXPECT_EQ(arrival_rate(together), 0);
}

// Law: 2 workers of 4 slots, steps of 2 + 0.5 * 4 * 18.25 ms, 2 tokens a request.
TEST(Capacity, IsSlotsOverTheTimeOfARequest) {
  const auto lengths = length_statistics(pair_of_requests());
  const double step_s = (2 + 0.5 * 4 * 18.25) / 1e3;
  EXPECT_DOUBLE_EQ(capacity_per_second(lengths, {.workers = 2, .slots = 4, .fixed_ms = 2, .per_token_ms = 0.5}),
                   8 / (2 * step_s));
}

// Law: KV space for fewer sequences than slots counts as that many slots; more space counts for nothing.
TEST(Capacity, IsThatOfTheSlotsThatHaveKvSpace) {
  const auto lengths = length_statistics(pair_of_requests());  // busy slot 18.25
  const FleetShape few{.workers = 2, .slots = 10, .fixed_ms = 2, .per_token_ms = 0.5};
  FleetShape limited = few;
  limited.slots = 40;
  limited.kv_capacity = 10 * 18.25;
  EXPECT_NEAR(capacity_per_second(lengths, limited), capacity_per_second(lengths, few), 1e-9);
  EXPECT_NEAR(balanced_active(lengths, limited, 1e6), 10, 1e-9);
  limited.kv_capacity = 1e9;
  limited.slots = 10;
  EXPECT_EQ(capacity_per_second(lengths, limited), capacity_per_second(lengths, few));
}

// Law: measured step times stand in the place of the line: the same line measured gives the same figures.
TEST(Capacity, MeasuredStepTimesReplaceTheLine) {
  const auto lengths = length_statistics(pair_of_requests());
  const FleetShape line{.workers = 2, .slots = 40, .fixed_ms = 10, .per_token_ms = 0.1};
  FleetShape measured{.workers = 2, .slots = 40};
  measured.measured_ms = [](double load) { return 10 + 0.1 * load; };
  const double capacity = capacity_per_second(lengths, line);
  EXPECT_DOUBLE_EQ(capacity_per_second(lengths, measured), capacity);
  for (const double load : {0.1, 0.5, 0.9, 0.99, 1.0, 1.5}) {
    EXPECT_NEAR(balanced_active(lengths, measured, load * capacity), balanced_active(lengths, line, load * capacity),
                1e-5)
        << load;
  }
}

// Law: a perfectly balanced fleet runs so many sequences that what arrives is finished in steps of just that length;
// all slots when more arrives than it can finish.
TEST(BalancedActive, IsTheFixedPointOfArrivalsAndStepTime) {
  const auto lengths = length_statistics(pair_of_requests());  // mean output 2, busy slot 18.25
  const FleetShape fleet{.workers = 2, .slots = 40, .fixed_ms = 10, .per_token_ms = 0.1};
  const double capacity = capacity_per_second(lengths, fleet);
  for (const double load : {0.1, 0.5, 0.9, 0.99}) {
    const double active = balanced_active(lengths, fleet, load * capacity);
    const double step_s = (10 + 0.1 * active * 18.25) / 1e3;
    EXPECT_NEAR(active, load * capacity / 2 * 2 * step_s, 1e-9) << load;
    EXPECT_LT(active, 40) << load;
  }
  EXPECT_NEAR(balanced_active(lengths, fleet, capacity), 40, 1e-9);
  EXPECT_EQ(balanced_active(lengths, fleet, 1.5 * capacity), 40);
  EXPECT_EQ(balanced_active(lengths, fleet, 1000 * capacity), 40);
}

// Law: where steps do not depend on load, the share of busy slots is the load itself.
TEST(BalancedActive, IsTheLoadWhenStepsAreAllAlike) {
  const auto lengths = length_statistics(pair_of_requests());
  const FleetShape fleet{.workers = 3, .slots = 50, .fixed_ms = 20};
  EXPECT_NEAR(balanced_active(lengths, fleet, 0.7 * capacity_per_second(lengths, fleet)), 35, 1e-9);
}

TEST(LengthStatistics, MatchThePublishedFiguresOfTheSegment) {
  const auto trace = read_trace("examples/traces/azure2023_conv_segment.csv");
  ASSERT_TRUE(trace) << trace.error();
  const auto lengths = length_statistics(trace->requests);
  EXPECT_NEAR(lengths.mean_prompt, 1100.4, 0.05);
  EXPECT_NEAR(lengths.mean_output, 211.4, 0.05);
  EXPECT_NEAR(lengths.busy_slot_weight, 1236.1, 0.05);
  EXPECT_NEAR(arrival_rate(trace->requests), 5.345, 0.001);
}

// Law: every token-step of the trace is equally likely: request 0 at age 0, request 1 at ages 0, 1, 2.
TEST(StationaryLaw, IsLengthBiasedWithUniformAge) {
  const StationaryLaw law{pair_of_requests()};
  Random random{11};
  std::map<std::pair<std::size_t, std::int64_t>, int> seen;
  for (int i = 0; i < 40'000; ++i) {
    const auto running = law.draw(random);
    ++seen[{running.index, running.age.count()}];
  }
  const std::vector<std::pair<std::size_t, std::int64_t>> possible{{0, 0}, {1, 0}, {1, 1}, {1, 2}};
  ASSERT_EQ(seen.size(), possible.size());
  for (const auto& place : possible) EXPECT_NEAR(seen[place], 10'000, 400);
}

// Law: the mean load of a drawn slot is the busy-slot weight, by which capacity is counted.
TEST(StationaryLaw, MeanLoadIsTheBusySlotWeight) {
  const auto trace = read_trace("examples/traces/azure2023_conv_segment.csv");
  ASSERT_TRUE(trace) << trace.error();
  const StationaryLaw law{trace->requests};
  Random random{5};
  constexpr int draws = 200'000;
  double sum = 0;
  for (int i = 0; i < draws; ++i) {
    const auto running = law.draw(random);
    const auto& request = trace->requests[running.index];
    ASSERT_LT(running.age, request.output);
    sum += static_cast<double>((request.prompt + running.age).count());
  }
  const double weight = length_statistics(trace->requests).busy_slot_weight;
  EXPECT_NEAR(sum / draws / weight, 1, 0.01);
}

}  // namespace
}  // namespace balanceroute::trace
