#include "policy/running/running_requests.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

namespace balanceroute {
namespace {

Request request(std::uint64_t id, std::int64_t generated = 0) {
  return {.id = RequestId{id}, .prompt = Tokens{100}, .generated = Tokens{generated}};
}

// Law: a request ages with its own group's steps from the moment it runs, and from what it was last said to be.
TEST(RunningRequests, AgeGoesWithTheGroupsClock) {
  RunningRequests running;
  const auto one = running.admitted(request(1, 5), GroupId{0}, WorkerId{0}).value();
  const auto other = running.admitted(request(2), GroupId{1}, WorkerId{1}).value();
  running.stepped(GroupId{0}, Steps{3});
  EXPECT_EQ(running.age(one), Tokens{5});  // dispatched only
  EXPECT_EQ(running.aged(RequestId{1}, Tokens{5}), one);
  running.aged(RequestId{2}, Tokens{0});
  running.stepped(GroupId{0}, Steps{4});
  EXPECT_EQ(running.age(one), Tokens{9});
  EXPECT_EQ(running.age(other), Tokens{0});
  running.aged(RequestId{1}, Tokens{20});
  running.stepped(GroupId{0}, Steps{1});
  EXPECT_EQ(running.age(one), Tokens{21});
  EXPECT_EQ(running.clock(GroupId{0}), Steps{8});
}

// Law: what left is forgotten, the others of its worker stay, and its handle serves the next one.
TEST(RunningRequests, HandlesAreUsedAgain) {
  RunningRequests running;
  const auto first = running.admitted(request(1), GroupId{0}, WorkerId{3}).value();
  const auto second = running.admitted(request(2), GroupId{0}, WorkerId{3}).value();
  EXPECT_EQ(running.left(RequestId{1}), first);
  EXPECT_EQ(running.request(first).id, RequestId{1});  // until the next admission
  EXPECT_FALSE(running.find(RequestId{1}));
  ASSERT_EQ(running.running_on(WorkerId{3}).size(), 1U);
  EXPECT_EQ(running.running_on(WorkerId{3}).front(), second);
  EXPECT_EQ(running.admitted(request(3), GroupId{0}, WorkerId{4}), first);
  EXPECT_EQ(running.left(RequestId{2}), second);
  EXPECT_TRUE(running.running_on(WorkerId{3}).empty());
}

TEST(RunningRequests, UnknownAndRepeatedRequestsChangeNothing) {
  RunningRequests running;
  running.admitted(request(1), GroupId{0}, WorkerId{0});
  EXPECT_FALSE(running.admitted(request(1), GroupId{0}, WorkerId{1}));
  EXPECT_FALSE(running.aged(RequestId{9}, Tokens{1}));
  EXPECT_FALSE(running.left(RequestId{9}));
  EXPECT_TRUE(running.running_on(WorkerId{1}).empty());
  EXPECT_TRUE(running.workers(GroupId{7}).empty());
  EXPECT_EQ(running.clock(GroupId{7}), Steps{0});
}

// Law: workers are listed once, by group; spans tell entry and present age of each.
TEST(RunningRequests, ListsWorkersAndLives) {
  RunningRequests running;
  running.admitted(request(1, 2), GroupId{0}, WorkerId{5});
  running.admitted(request(2), GroupId{0}, WorkerId{1});
  running.admitted(request(3), GroupId{0}, WorkerId{5});
  running.aged(RequestId{1}, Tokens{2});
  running.stepped(GroupId{0}, Steps{10});
  EXPECT_TRUE(std::ranges::equal(running.workers(GroupId{0}), std::vector{WorkerId{5}, WorkerId{1}}));
  const auto spans = running.all_spans();
  ASSERT_EQ(spans.size(), 3U);
  const auto grown = std::ranges::find(spans, Tokens{12}, &LifeSpan::last_seen);
  ASSERT_NE(grown, spans.end());
  EXPECT_EQ(grown->first_seen, Tokens{2});
  EXPECT_EQ(std::ranges::count(spans, Tokens{0}, &LifeSpan::last_seen), 2);
}

}  // namespace
}  // namespace balanceroute
