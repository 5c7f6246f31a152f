#include "config/nearest.hpp"

#include <gtest/gtest.h>

#include <array>
#include <string>

namespace balanceroute {
namespace {

TEST(Nearest, DistanceCountsSlipsOfTheKeyboard) {
  EXPECT_EQ(edit_distance("", ""), 0U);
  EXPECT_EQ(edit_distance("slots", "slots"), 0U);
  EXPECT_EQ(edit_distance("", "slots"), 5U);
  EXPECT_EQ(edit_distance("slot", "slots"), 1U);
  EXPECT_EQ(edit_distance("sltos", "slots"), 1U);  // two keys swapped
  EXPECT_EQ(edit_distance("kitten", "sitting"), 3U);
}

// Law: a slip gets the one name it was; a name that is near to none gets all.
TEST(Nearest, SuggestsOneNameOrAll) {
  const std::array<std::string, 3> known{"listen", "admin", "fleets"};
  EXPECT_EQ(suggestion("lisen", known), "did you mean listen?");
  EXPECT_EQ(suggestion("fleet", known), "did you mean fleets?");
  EXPECT_EQ(suggestion("telemetry", known), "expected one of listen, admin, fleets");
  EXPECT_EQ(suggestion(std::string(100'000, 'x'), known), "expected one of listen, admin, fleets");
  EXPECT_EQ(suggestion("x", {}), "expected nothing here");
}

}  // namespace
}  // namespace balanceroute
