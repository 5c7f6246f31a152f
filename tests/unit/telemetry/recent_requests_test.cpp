#include "telemetry/recent_requests.hpp"

#include <gtest/gtest.h>

namespace balanceroute::telemetry {
namespace {

using std::chrono::nanoseconds;
using std::chrono::seconds;

TEST(RecentRequests, NobodyHasCome) {
  EXPECT_EQ(RecentRequests{}.summary(seconds{5}).ttft.count, 0U);
}

// Law: a request that never came to a point has no part in the figures of that point.
TEST(RecentRequests, ATimeThatNeverCameIsNotCounted) {
  RecentRequests recent;
  recent.add(seconds{1}, {.pool_wait = 0.5, .ttft = 2});
  recent.add(seconds{1}, {.pool_wait = 0.25});
  const RecentTimes times = recent.summary(seconds{1});
  EXPECT_EQ(times.pool_wait.count, 2U);
  EXPECT_EQ(times.pool_wait.max, 0.5);
  EXPECT_EQ(times.ttft.count, 1U);
  EXPECT_EQ(times.ttft.p50, 2);
  EXPECT_EQ(times.tpot.count, 0U);
}

// Law: what ended longer ago than the span is over.
TEST(RecentRequests, TheSpanEnds) {
  RecentRequests recent;
  recent.add(seconds{1}, {.ttft = 9});
  recent.add(seconds{2}, {.ttft = 1});
  EXPECT_EQ(recent.summary(seconds{1} + RecentRequests::kSpan).ttft.count, 2U);
  EXPECT_EQ(recent.summary(seconds{1} + RecentRequests::kSpan + nanoseconds{1}).ttft.max, 1);
}

// Law: memory does not grow with traffic; the last requests stay.
TEST(RecentRequests, TheLastOnesSpeakForAll) {
  RecentRequests recent;
  recent.add(seconds{1}, {.ttft = 9});
  for (std::size_t i = 0; i < RecentRequests::kKept; ++i) recent.add(seconds{1}, {.ttft = 1});
  EXPECT_EQ(recent.summary(seconds{1}).ttft.count, RecentRequests::kKept);
  EXPECT_EQ(recent.summary(seconds{1}).ttft.max, 1);
}

}  // namespace
}  // namespace balanceroute::telemetry
