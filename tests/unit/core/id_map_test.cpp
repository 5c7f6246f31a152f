#include "core/id_map.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

TEST(IdMap, EmptyKnowsNothing) {
  IdMap table;
  EXPECT_EQ(table.find(RequestId{1}), std::nullopt);
  EXPECT_FALSE(table.erase(RequestId{1}));
  EXPECT_EQ(table.size(), 0U);
}

// Law: insert never replaces, assign always does.
TEST(IdMap, InsertKeepsAndAssignReplaces) {
  IdMap table;
  EXPECT_TRUE(table.insert(RequestId{1}, 10));
  EXPECT_FALSE(table.insert(RequestId{1}, 20));
  EXPECT_EQ(table.find(RequestId{1}), 10U);
  table.assign(RequestId{1}, 30);
  table.assign(RequestId{2}, 40);
  EXPECT_EQ(table.find(RequestId{1}), 30U);
  EXPECT_EQ(table.find(RequestId{2}), 40U);
  EXPECT_EQ(table.size(), 2U);
}

// Law: growing loses nobody.
TEST(IdMap, GrowsPastItsFirstSize) {
  IdMap table;
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_TRUE(table.insert(RequestId{i * 1024ULL}, i));
  for (std::uint32_t i = 0; i < 1000; ++i) ASSERT_EQ(table.find(RequestId{i * 1024ULL}), i);
  EXPECT_EQ(table.size(), 1000U);
}

}  // namespace
}  // namespace balanceroute
