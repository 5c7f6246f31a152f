#include "stats/paired_difference.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/random.hpp"

namespace balanceroute {
namespace {

// Law: the quantiles of the printed tables of Student's t; beyond the table without a jump, towards the normal value.
TEST(StudentT, HasTheValuesOfTheTables) {
  EXPECT_NEAR(student_t_975(1), 12.7062, 1e-4);
  EXPECT_NEAR(student_t_975(2), 4.3027, 1e-4);
  EXPECT_NEAR(student_t_975(4), 2.7764, 1e-4);
  EXPECT_NEAR(student_t_975(10), 2.2281, 1e-4);
  EXPECT_NEAR(student_t_975(30), 2.0423, 1e-4);
  EXPECT_NEAR(student_t_975(31), 2.0395, 1e-4);
  EXPECT_NEAR(student_t_975(60), 2.0003, 1e-4);
  EXPECT_NEAR(student_t_975(120), 1.9799, 1e-4);
  EXPECT_NEAR(student_t_975(1'000'000), 1.95996, 1e-4);
  for (std::size_t n = 1; n < 200; ++n) EXPECT_GT(student_t_975(n), student_t_975(n + 1));
}

// Law: mean +- t * s / sqrt(n); 1, 2, 3 have s = 1.
TEST(MeanInterval, IsStudentsInterval) {
  const MeanInterval interval = mean_interval(std::vector{1.0, 2.0, 3.0});
  EXPECT_DOUBLE_EQ(interval.mean, 2);
  EXPECT_NEAR(interval.half_width.value(), 4.302653 / std::sqrt(3.0), 1e-6);
}

// Law: one value has a mean and no interval; none has 0 and no interval.
TEST(MeanInterval, NeedsTwoValues) {
  EXPECT_EQ(mean_interval(std::vector{5.0}).mean, 5);
  EXPECT_FALSE(mean_interval(std::vector{5.0}).half_width);
  EXPECT_EQ(mean_interval({}).mean, 0);
  EXPECT_FALSE(mean_interval({}).half_width);
}

// Law: of many samples from a normal law, 95 % have the true mean in their interval.
TEST(MeanInterval, CoversTheTruthNineteenTimesOfTwenty) {
  Random random{7};
  const auto normal = [&random] {  // twelve uniforms: near enough
    double sum = -6;
    for (int i = 0; i < 12; ++i) sum += random.uniform();
    return sum;
  };
  int covered = 0;
  constexpr int kSamples = 20'000;
  for (int i = 0; i < kSamples; ++i) {
    std::vector<double> sample(5);
    for (double& value : sample) value = normal();
    const MeanInterval interval = mean_interval(sample);
    covered += std::abs(interval.mean) <= interval.half_width.value() ? 1 : 0;
  }
  EXPECT_NEAR(static_cast<double>(covered) / kSamples, 0.95, 0.01);
}

// Law: what both runs share cancels: a steady +10 % is +10 % without spread, however far the runs lie apart.
TEST(PairedChange, CancelsWhatPairsShare) {
  const MeanInterval change = paired_change_percent(std::vector{11.0, 110.0, 1100.0}, std::vector{10.0, 100.0, 1000.0});
  EXPECT_NEAR(change.mean, 10, 1e-9);
  EXPECT_NEAR(change.half_width.value(), 0, 1e-9);
}

// Law: a pair without a base says nothing.
TEST(PairedChange, LeavesOutPairsWithoutABase) {
  const MeanInterval change = paired_change_percent(std::vector{3.0, 3.0}, std::vector{0.0, 2.0});
  EXPECT_NEAR(change.mean, 50, 1e-9);
  EXPECT_FALSE(change.half_width);
}

}  // namespace
}  // namespace balanceroute
