#include "core/units.hpp"

#include <gtest/gtest.h>

#include <concepts>
#include <type_traits>
#include <unordered_set>

#include "core/ids.hpp"

namespace balanceroute {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) { a + b; };

static_assert(Addable<Tokens, Tokens> && !Addable<Tokens, Steps> && !Addable<Tokens, std::int64_t>);
static_assert(!std::is_convertible_v<Steps, Tokens> && !std::is_convertible_v<std::int64_t, Tokens>);
static_assert(!std::equality_comparable_with<WorkerId, GroupId> && !std::is_convertible_v<WorkerId, std::uint32_t>);

TEST(Units, LikeAddsToLikeAndNumbersScale) {
  Tokens tokens{5};
  tokens += Tokens{7};
  tokens -= Tokens{2};
  EXPECT_EQ(tokens, Tokens{10});
  EXPECT_EQ(tokens + Tokens{1} - Tokens{4}, Tokens{7});
  EXPECT_EQ(tokens * 3, 3 * tokens);
  EXPECT_LT(Steps{2}, Steps{3});
}

// Law: overflow is the part above the margin, never negative.
TEST(Units, OverflowStartsJustAboveTheMargin) {
  EXPECT_EQ(overflow(Tokens{4}, Tokens{5}), Tokens{0});
  EXPECT_EQ(overflow(Tokens{5}, Tokens{5}), Tokens{0});
  EXPECT_EQ(overflow(Tokens{6}, Tokens{5}), Tokens{1});
  EXPECT_EQ(overflow(Tokens{0}, Tokens{0}), Tokens{0});
}

TEST(Ids, DefaultNamesNothing) {
  EXPECT_FALSE(WorkerId{}.names_something());
  EXPECT_TRUE(WorkerId{0}.names_something());
  EXPECT_NE(WorkerId{}, WorkerId{0});
}

TEST(Ids, AreHashable) {
  const std::unordered_set<RequestId> ids{RequestId{1}, RequestId{2}, RequestId{1}};
  EXPECT_EQ(ids.size(), 2U);
}

}  // namespace
}  // namespace balanceroute
