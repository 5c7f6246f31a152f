// Laws of a measured step time: through its points, straight between them, on beyond them, never falling.
#include "stats/step_table.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

const StepTable kTable{{{.load = 100, .ms = 10}, {.load = 200, .ms = 20}, {.load = 400, .ms = 22}}};

TEST(StepTable, GoesThroughItsPoints) {
  EXPECT_DOUBLE_EQ(kTable.milliseconds(100), 10);
  EXPECT_DOUBLE_EQ(kTable.milliseconds(200), 20);
  EXPECT_DOUBLE_EQ(kTable.milliseconds(400), 22);
}

TEST(StepTable, IsStraightBetweenThemAndBeyond) {
  EXPECT_DOUBLE_EQ(kTable.milliseconds(150), 15);
  EXPECT_DOUBLE_EQ(kTable.milliseconds(300), 21);
  EXPECT_DOUBLE_EQ(kTable.milliseconds(600), 24);
  EXPECT_DOUBLE_EQ(kTable.milliseconds(50), 5);
}

TEST(StepTable, ItsLineGoesThroughTheOutermostPoints) {
  EXPECT_DOUBLE_EQ(kTable.line().per_token_ms, 0.04);
  EXPECT_DOUBLE_EQ(kTable.line().fixed_ms, 6);
}

TEST(StepTable, TakesNoNegativeTime) {
  const StepTable steep{{{.load = 100, .ms = 1}, {.load = 200, .ms = 50}}};
  EXPECT_EQ(steep.milliseconds(0), 0);
}

}  // namespace
}  // namespace balanceroute
