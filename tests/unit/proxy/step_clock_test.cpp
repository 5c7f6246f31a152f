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

// Law: a stream whose first step others had shown already stays as it began.
TEST(StreamSteps, FirstEventBelongsToTheLatestStep) {
  StreamSteps stream;
  EXPECT_EQ(stream.take(Steps{10}, Steps{1}), Steps{9});
  for (int tokens = 2; tokens < 40; ++tokens) {
    // In turn before and after the others.
    EXPECT_EQ(stream.take(Steps{8 + tokens + tokens % 2}, Steps{tokens}), std::nullopt);
  }
  EXPECT_EQ(stream.begin(), Steps{9});
}

// Law: one that was the first to show its step is a step behind in all that follows, and is mended once.
TEST(StreamSteps, LagOfAllLaterEventsIsTakenOff) {
  StreamSteps stream;
  stream.take(Steps{10}, Steps{1});  // in truth step 11
  int mended = 0;
  for (int tokens = 2; tokens < 40; ++tokens) mended += stream.take(Steps{10 + tokens}, Steps{tokens}) ? 1 : 0;
  EXPECT_EQ(mended, 1);
  EXPECT_EQ(stream.begin(), Steps{10});
}

// Law: with several tokens an event up to that many steps are taken off, and never more: a slow reader is no late one.
TEST(StreamSteps, NoMoreThanTheFirstEventIsTakenOff) {
  for (const auto& [lag, off] : {std::pair{3, 3}, {4, 4}, {5, 4}, {500, 4}}) {
    StreamSteps stream;
    stream.take(Steps{100}, Steps{4});
    for (int event = 2; event < 20; ++event) stream.take(Steps{96 + 4 * event + lag}, Steps{4 * event});
    EXPECT_EQ(stream.begin(), Steps{96 + off}) << lag;
  }
}

}  // namespace
}  // namespace balanceroute::proxy
