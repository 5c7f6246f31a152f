#include "proxy/step_clock.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

// Law: the clock shows the largest step of any thread, of each group by itself.
TEST(StepClock, ShowsTheLatest) {
  StepClock clock{2, 2};
  clock.report(0, GroupId{1}, Steps{5});
  clock.report(1, GroupId{1}, Steps{7});
  clock.report(1, GroupId{1}, Steps{6});
  EXPECT_EQ(clock.now(GroupId{0}), Steps{0});
  EXPECT_EQ(clock.now(GroupId{1}), Steps{7});
}

}  // namespace
}  // namespace balanceroute::proxy
