#include "proxy/decision_trail.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

DecisionTrail with(std::uint64_t records) {
  DecisionTrail trail;
  for (std::uint64_t i = 0; i < records; ++i) trail.add({.request = RequestId{i}});
  return trail;
}

TEST(DecisionTrail, AnEmptyOneHasNothing) {
  EXPECT_TRUE(with(0).after(0).empty());
}

// Law: who has read up to a serial gets what came after it, each once and in order.
TEST(DecisionTrail, GoesOnWhereOneHasRead) {
  const DecisionTrail trail = with(5);
  const auto rest = trail.after(3);
  ASSERT_EQ(rest.size(), 2U);
  EXPECT_EQ(rest[0].serial, 4U);
  EXPECT_EQ(rest[0].request, RequestId{3});
  EXPECT_EQ(rest[1].serial, 5U);
  EXPECT_TRUE(trail.after(5).empty());
}

// Law: only the last ones stay, so that nobody's memory grows with traffic.
TEST(DecisionTrail, ForgetsTheOldest) {
  const auto all = with(DecisionTrail::kKept + 7).after(0);
  ASSERT_EQ(all.size(), DecisionTrail::kKept);
  EXPECT_EQ(all.front().serial, 8U);
  EXPECT_EQ(all.back().serial, DecisionTrail::kKept + 7);
}

// Law: a serial of a trail before, as after a restart, asks for nothing.
TEST(DecisionTrail, ASerialAheadHasNothingAfterIt) {
  EXPECT_TRUE(with(3).after(100).empty());
}

}  // namespace
}  // namespace balanceroute::proxy
