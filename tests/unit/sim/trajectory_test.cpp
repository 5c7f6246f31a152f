// Laws of a thinned-out trajectory: bounded, evenly spaced, its means are those of all steps.
#include "sim/trajectory.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute::sim {
namespace {

using std::chrono::milliseconds;

// Step i begins at 10 * i ms, lasts i ms and has loads i and 0.
Trajectory recorded(std::int64_t steps, std::size_t most_points) {
  TrajectoryRecorder recorder{most_points};
  for (std::int64_t i = 0; i < steps; ++i) {
    recorder.step(milliseconds{10 * i}, milliseconds{i}, std::vector{Tokens{i}, Tokens{0}}, 2 * i);
  }
  return recorder.result();
}

// Law: what fits is kept step by step.
TEST(Trajectory, KeepsAFewStepsAsTheyAre) {
  const Trajectory told = recorded(4, 4);
  EXPECT_EQ(told.steps_of_point, 1);
  ASSERT_EQ(told.points.size(), 4U);
  EXPECT_EQ(told.points[3].start, milliseconds{30});
  EXPECT_EQ(told.points[3].loads, (std::vector{Tokens{3}, Tokens{0}}));
  EXPECT_EQ(told.points[3].step_ms, 3);
  EXPECT_EQ(told.points[3].imbalance, 3);
  EXPECT_EQ(told.points[3].active, 6);
}

// Law: of many steps each point is as many, its loads those of the first and its figures the means of all; a last
// point of fewer is left out.
TEST(Trajectory, ThinsOutEvenly) {
  const Trajectory told = recorded(14, 4);
  EXPECT_EQ(told.steps_of_point, 4);
  ASSERT_EQ(told.points.size(), 3U);
  for (std::int64_t i = 0; i < 3; ++i) {
    const auto& point = told.points[static_cast<std::size_t>(i)];
    EXPECT_EQ(point.start, milliseconds{40 * i});
    EXPECT_EQ(point.loads[0], Tokens{4 * i});
    EXPECT_DOUBLE_EQ(point.step_ms, static_cast<double>(4 * i) + 1.5);
    EXPECT_DOUBLE_EQ(point.imbalance, static_cast<double>(4 * i) + 1.5);
    EXPECT_DOUBLE_EQ(point.active, static_cast<double>(8 * i) + 3);
  }
}

TEST(Trajectory, IsEmptyWithoutSteps) {
  EXPECT_TRUE(recorded(0, 4).points.empty());
}

}  // namespace
}  // namespace balanceroute::sim
