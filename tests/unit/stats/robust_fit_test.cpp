#include "stats/robust_fit.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <random>

namespace balanceroute {
namespace {

using Column = std::vector<double>;

std::optional<RobustFit> line(const Column& y, const Column& x) {
  const std::array<std::span<const double>, 1> predictors{x};
  return robust_fit(y, predictors);
}

struct Points {
  Column x;
  Column y;
};

// y = 10 + 1e-4 x with noise, x as tokens are.
Points noisy(std::uint64_t seed, std::size_t count, double outliers) {
  std::mt19937_64 random{seed};
  std::uniform_real_distribution<double> tokens{20'000, 200'000};
  std::normal_distribution<double> noise{0, 1};
  std::uniform_real_distribution<double> chance{0, 1};
  Points points;
  for (std::size_t i = 0; i < count; ++i) {
    points.x.push_back(tokens(random));
    points.y.push_back(10 + 1e-4 * points.x.back() + noise(random));
    if (chance(random) < outliers) points.y.back() += 50 * chance(random);
  }
  return points;
}

// Law: points on a line give the line, without a doubt.
TEST(RobustFit, ExactPointsGiveTheLine) {
  const auto fit = line({3, 5, 7, 9, 11}, {1, 2, 3, 4, 5});
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->constant.value, 1, 1e-9);
  EXPECT_NEAR(fit->slopes[0].value, 2, 1e-9);
  EXPECT_NEAR(fit->slopes[0].high - fit->slopes[0].low, 0, 1e-6);
  EXPECT_NEAR(fit->r2, 1, 1e-9);
}

// Law: a fifth of the points far above the line moves it by no more than two percent.
TEST(RobustFit, PointsFarOffDoNotMoveIt) {
  const Points points = noisy(7, 3000, 0.2);
  const auto fit = line(points.y, points.x);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->slopes[0].value, 1e-4, 2e-6);
  EXPECT_NEAR(fit->constant.value, 10, 0.5);
}

// Law: of many fits the intervals hold the truth in about 95 of 100.
TEST(RobustFit, IntervalsHoldTheTruth) {
  int slope = 0;
  int constant = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    const Points points = noisy(seed, 200, 0);
    const auto fit = line(points.y, points.x);
    ASSERT_TRUE(fit);
    slope += fit->slopes[0].low <= 1e-4 && 1e-4 <= fit->slopes[0].high;
    constant += fit->constant.low <= 10 && 10 <= fit->constant.high;
  }
  EXPECT_NEAR(slope, 285, 13);
  EXPECT_NEAR(constant, 285, 13);
}

// Law: where y has nothing to do with x, next to nothing is explained.
TEST(RobustFit, NothingIsExplainedByNothing) {
  Points points = noisy(3, 1000, 0);
  for (std::size_t i = 0; i < points.y.size(); ++i) points.y[i] -= 1e-4 * points.x[i];
  const auto fit = line(points.y, points.x);
  ASSERT_TRUE(fit);
  EXPECT_LT(fit->r2, 0.01);
  EXPECT_LT(std::abs(fit->slopes[0].value), 2e-6);
}

// Law: several predictors are told apart, whatever their units.
TEST(RobustFit, PlanesAreFound) {
  std::mt19937_64 random{5};
  std::uniform_real_distribution<double> tokens{0, 1e6};
  std::uniform_real_distribution<double> sequences{0, 100};
  Column y;
  Column x1;
  Column x2;
  for (int i = 0; i < 400; ++i) {
    x1.push_back(tokens(random));
    x2.push_back(sequences(random));
    y.push_back(5 + 2e-5 * x1.back() + 0.05 * x2.back());
  }
  const std::array<std::span<const double>, 2> predictors{x1, x2};
  const auto fit = robust_fit(y, predictors);
  ASSERT_TRUE(fit);
  EXPECT_NEAR(fit->slopes[0].value, 2e-5, 1e-10);
  EXPECT_NEAR(fit->slopes[1].value, 0.05, 1e-6);
  EXPECT_NEAR(fit->constant.value, 5, 1e-5);
}

// Law: what has no answer gets none.
TEST(RobustFit, NoFitWithoutEnoughToGoBy) {
  EXPECT_FALSE(line({1, 2, 3}, {1, 2, 3}));
  EXPECT_FALSE(line({1, 2, 3, 4}, {5, 5, 5, 5}));
  const Column y{1, 2, 3, 4, 5, 6};
  const Column x{1, 2, 3, 4, 5, 7};
  const Column twice{2, 4, 6, 8, 10, 14};
  const std::array<std::span<const double>, 2> predictors{x, twice};
  EXPECT_FALSE(robust_fit(y, predictors));
}

}  // namespace
}  // namespace balanceroute
