#include "stats/quantiles.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace balanceroute {
namespace {

// Law: a percentile is the measured value of rank floor(q n), never something in between.
TEST(Quantiles, PercentileIsAMeasuredValue) {
  const std::array values{1.0, 2.0, 3.0, 4.0};
  EXPECT_EQ(percentile(values, 0), 1.0);
  EXPECT_EQ(percentile(values, 0.49), 2.0);
  EXPECT_EQ(percentile(values, 0.5), 3.0);
  EXPECT_EQ(percentile(values, 0.99), 4.0);
  EXPECT_EQ(percentile(values, 1), 4.0);
  EXPECT_EQ(percentile({}, 0.5), 0.0);
}

TEST(Quantiles, SummaryOfUnorderedValues) {
  std::vector<double> values;
  for (int i = 99; i >= 0; --i) values.push_back(i);
  const Summary summary = summarize(values);
  EXPECT_EQ(summary.count, 100U);
  EXPECT_DOUBLE_EQ(summary.mean, 49.5);
  EXPECT_EQ(summary.p50, 50);
  EXPECT_EQ(summary.p95, 95);
  EXPECT_EQ(summary.p99, 99);
  EXPECT_EQ(summary.max, 99);
}

TEST(Quantiles, SummaryOfNothingAndOfOne) {
  EXPECT_EQ(summarize({}).count, 0U);
  EXPECT_EQ(summarize({}).p99, 0);
  const Summary one = summarize({7});
  EXPECT_EQ(one.p50, 7);
  EXPECT_EQ(one.max, 7);
}

}  // namespace
}  // namespace balanceroute
