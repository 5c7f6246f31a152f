#include "proxy/live_history.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {
namespace {

using nlohmann::json;

TEST(LiveHistory, AnEmptyOneHasNoRows) {
  EXPECT_EQ(LiveHistory{3}.as_json(), json::parse(R"({"at_s": [], "columns": {}})"));
}

// Law: a column has a place for every time, empty where the row did not name it.
TEST(LiveHistory, ColumnsAreAsLongAsTheTimes) {
  LiveHistory history{5};
  history.add(1, {{"a", 10}});
  history.add(2, {{"a", 11}, {"b", 0.5}});
  history.add(3, {{"b", 1}});
  EXPECT_EQ(history.as_json(),
            json::parse(R"({"at_s": [1.0, 2.0, 3.0], "columns": {"a": [10, 11, null], "b": [null, 0.5, 1]}})"));
}

// Law: the oldest row goes; a column without a number is forgotten, so that workers that left take no room.
TEST(LiveHistory, ForgetsTheOldest) {
  LiveHistory history{2};
  history.add(1, {{"a", 10}});
  history.add(2, {{"b", 20}});
  history.add(3, {{"b", 30}});
  EXPECT_EQ(history.as_json(), json::parse(R"({"at_s": [2.0, 3.0], "columns": {"b": [20, 30]}})"));
}

}  // namespace
}  // namespace balanceroute::proxy
