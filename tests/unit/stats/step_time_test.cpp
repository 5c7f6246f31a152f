// Laws of the step time line.
#include "stats/step_time.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

// Law: an empty step takes the fixed part; each token adds the same.
TEST(StepTime, IsALineInTheLoad) {
  const StepTime time{.fixed_ms = 60, .per_token_ms = 4e-5};
  EXPECT_DOUBLE_EQ(time.milliseconds(Tokens{0}), 60);
  EXPECT_DOUBLE_EQ(time.milliseconds(Tokens{1'000'000}), 100);
  EXPECT_EQ(time.duration(Tokens{500'000}), std::chrono::milliseconds{80});
}

// Law: sums of many steps do not drift: a duration is the nearest nanosecond.
TEST(StepTime, DurationRoundsToTheNearestNanosecond) {
  const StepTime time{.fixed_ms = 0, .per_token_ms = 1.00525e-4};
  EXPECT_EQ(time.duration(Tokens{1}), std::chrono::nanoseconds{101});  // 100.525
  EXPECT_EQ(time.duration(Tokens{3}), std::chrono::nanoseconds{302});  // 301.575
}

}  // namespace
}  // namespace balanceroute
