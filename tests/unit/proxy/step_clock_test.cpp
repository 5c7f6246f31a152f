#include "proxy/step_clock.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

net::TimePoint at(int ms) {
  return net::TimePoint{std::chrono::milliseconds{ms}};
}

// Law: the clock shows the largest step of any thread, of each group by itself.
TEST(StepClock, ShowsTheLatest) {
  StepClock clock{2, 2};
  clock.report(0, GroupId{1}, Steps{5}, at(1));
  clock.report(1, GroupId{1}, Steps{7}, at(2));
  clock.report(1, GroupId{1}, Steps{6}, at(3));
  EXPECT_EQ(clock.latest(GroupId{0}).step, Steps{0});
  EXPECT_EQ(clock.latest(GroupId{1}).step, Steps{7});
}

// Law: a step began when the first stream of any thread showed it.
TEST(StepClock, TellsWhenTheLatestWasShownFirst) {
  StepClock clock{3, 1};
  clock.report(0, GroupId{0}, Steps{7}, at(5));
  clock.report(1, GroupId{0}, Steps{7}, at(4));
  clock.report(1, GroupId{0}, Steps{7}, at(6));
  clock.report(2, GroupId{0}, Steps{6}, at(1));
  EXPECT_EQ(clock.latest(GroupId{0}).since, at(4));
}

// Law: who may have been read late shows no step before half of one has passed since the latest, and one then.
TEST(StepClock, LimitsThoseWhoseBeginningIsNotSure) {
  StepClock clock{1, 2};
  clock.set_half_step(GroupId{1}, std::chrono::milliseconds{5});
  clock.report(0, GroupId{1}, Steps{7}, at(10));
  EXPECT_EQ(clock.limit(GroupId{1}, at(14)), Steps{7});
  EXPECT_EQ(clock.limit(GroupId{1}, at(15)), Steps{8});
  EXPECT_EQ(clock.limit(GroupId{1}, at(100)), Steps{8});
}

}  // namespace
}  // namespace balanceroute::proxy
