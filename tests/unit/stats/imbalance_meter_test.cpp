#include "stats/imbalance_meter.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute {
namespace {

ImbalanceMeter metered(const std::vector<std::vector<std::int64_t>>& steps) {
  ImbalanceMeter meter;
  for (const auto& step : steps) {
    std::vector<Tokens> loads;
    for (const std::int64_t load : step) loads.emplace_back(load);
    meter.record(loads);
  }
  return meter;
}

TEST(ImbalanceMeter, NothingRecordedIsZero) {
  const ImbalanceMeter meter = metered({{}});
  EXPECT_EQ(meter.steps(), 0);
  EXPECT_EQ(meter.spread_mean(), 0);
  EXPECT_EQ(meter.load_idle_fraction(), 0);
  EXPECT_EQ(meter.barrier_idle_fraction({.fixed_ms = 10, .per_token_ms = 1}), 0);
}

// Law: means are over steps.
TEST(ImbalanceMeter, MeansOfTheWorkedExample) {
  const ImbalanceMeter meter = metered({{10, 7, 6, 5}, {4, 4, 4, 4}});
  EXPECT_EQ(meter.steps(), 2);
  EXPECT_DOUBLE_EQ(meter.envelope_mean(), 7);
  EXPECT_DOUBLE_EQ(meter.load_mean(), 5.5);
  EXPECT_DOUBLE_EQ(meter.spread_mean(), 2.5);
  EXPECT_DOUBLE_EQ(meter.imbalance_mean(), 6);
}

// Law: idle fractions are ratios of sums, so a heavy step counts for more than a light one.
TEST(ImbalanceMeter, IdleFractionsAreRatiosOfSums) {
  const ImbalanceMeter meter = metered({{100, 0}, {2, 2}});
  EXPECT_DOUBLE_EQ(meter.load_idle_fraction(), 50.0 / 102);
  // Steps last 10 + 100 and 10 + 2; half of the first 100 is waited away.
  EXPECT_DOUBLE_EQ(meter.barrier_idle_fraction({.fixed_ms = 10, .per_token_ms = 1}), 50.0 / 122);
}

// Law: two meters added are one meter that saw the steps of both.
TEST(ImbalanceMeter, MetersAddUp) {
  ImbalanceMeter sum = metered({{100, 0}});
  sum += metered({{2, 2}, {3, 9}});
  const ImbalanceMeter whole = metered({{100, 0}, {2, 2}, {3, 9}});
  EXPECT_EQ(sum.steps(), whole.steps());
  EXPECT_DOUBLE_EQ(sum.load_idle_fraction(), whole.load_idle_fraction());
  EXPECT_DOUBLE_EQ(sum.spread_mean(), whole.spread_mean());
  EXPECT_DOUBLE_EQ(sum.imbalance_mean(), whole.imbalance_mean());
}

TEST(ImbalanceMeter, IdleGroupWastesNothing) {
  const ImbalanceMeter meter = metered({{0, 0}});
  EXPECT_EQ(meter.load_idle_fraction(), 0);
  EXPECT_EQ(meter.barrier_idle_fraction({.fixed_ms = 0, .per_token_ms = 1}), 0);
}

}  // namespace
}  // namespace balanceroute
