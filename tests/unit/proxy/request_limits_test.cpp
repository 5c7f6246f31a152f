#include "proxy/request_limits.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <random>
#include <vector>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

constexpr net::TimePoint kStart{std::chrono::hours{1}};

ApiKeyParams key_with(std::int64_t requests_per_minute, std::int64_t max_requests = ApiKeyParams::kNoLimit,
                      const std::string& name = "a") {
  ApiKeyParams key;
  key.tenant.name = name;
  key.requests_per_minute = requests_per_minute;
  key.max_requests = max_requests;
  return key;
}

// Law: as many requests begin in a minute as may, whenever in it; the next one when the first of them is a minute old,
// and that is what its client is told.
TEST(RequestLimits, RequestsOfAMinuteAreBounded) {
  RequestLimits limits;
  const ApiKeyParams key = key_with(3);
  for (const auto at : {0s, 10s, 20s}) EXPECT_TRUE(limits.admit(key, kStart + at));
  const auto refused = limits.admit(key, kStart + 20s);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().limit, Limit::requests_per_minute);
  EXPECT_EQ(refused.error().retry_after, 40s);
  EXPECT_EQ(limits.admit(key, kStart + 59'001ms).error().retry_after, 1s);
  EXPECT_TRUE(limits.admit(key, kStart + 60s));
  EXPECT_EQ(limits.admit(key, kStart + 60s).error().retry_after, 10s);
}

// Law: in any 60 seconds at most that many begin, and none is refused without need: the slow count says the same.
TEST(RequestLimits, CountAsTheSlowCountDoes) {
  std::mt19937_64 draw{7};
  RequestLimits limits;
  const ApiKeyParams key = key_with(5);
  std::vector<net::TimePoint> begun;
  net::TimePoint now = kStart;
  for (int i = 0; i < 2'000; ++i) {
    now += std::chrono::milliseconds{draw() % 20'000};
    const auto recent = std::ranges::count_if(begun, [&](net::TimePoint at) { return at > now - 60s; });
    const bool may = recent < 5;
    EXPECT_EQ(limits.admit(key, now).has_value(), may) << i;
    if (may) begun.push_back(now);
  }
  EXPECT_GT(begun.size(), 300U);
}

// Law: so many are there at once; the end of one makes room at once, and a refused one counts for nothing.
TEST(RequestLimits, RequestsAtOnceAreBounded) {
  RequestLimits limits;
  const ApiKeyParams key = key_with(3, 2);
  std::deque<RequestLimits::Permit> permits;
  for (int i = 0; i < 2; ++i) permits.push_back(*limits.admit(key, kStart));
  for (int i = 0; i < 5; ++i) {
    const auto refused = limits.admit(key, kStart);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().limit, Limit::max_requests);
    EXPECT_EQ(refused.error().retry_after, 1s);
  }
  permits.pop_front();
  permits.push_back(*limits.admit(key, kStart));  // the third of its minute
  permits.clear();
  EXPECT_EQ(limits.admit(key, kStart).error().limit, Limit::requests_per_minute);
}

// Law: keys have nothing to do with one another, and without limits nobody is refused.
TEST(RequestLimits, EachKeyHasItsOwn) {
  RequestLimits limits;
  const auto first = limits.admit(key_with(1, 1), kStart);
  EXPECT_TRUE(first);
  EXPECT_FALSE(limits.admit(key_with(1, 1), kStart));
  EXPECT_TRUE(limits.admit(key_with(1, 1, "b"), kStart));
  std::deque<RequestLimits::Permit> permits;
  const ApiKeyParams free = key_with(ApiKeyParams::kNoLimit, ApiKeyParams::kNoLimit, "c");
  for (int i = 0; i < 1'000; ++i) permits.push_back(*limits.admit(free, kStart));
}

// Law: other limits hold at once, against what has been counted: a smaller rate waits until enough of the minute is
// over.
TEST(RequestLimits, OtherLimitsHoldAtOnce) {
  RequestLimits limits;
  for (const auto at : {0s, 10s, 20s, 30s}) EXPECT_TRUE(limits.admit(key_with(4), kStart + at));
  EXPECT_EQ(limits.admit(key_with(2), kStart + 30s).error().retry_after, 50s);  // the third is a minute old
  EXPECT_TRUE(limits.admit(key_with(5), kStart + 30s));
  const auto permit = limits.admit(key_with(ApiKeyParams::kNoLimit), kStart + 30s);
  EXPECT_TRUE(permit);
  EXPECT_EQ(limits.admit(key_with(ApiKeyParams::kNoLimit, 1), kStart + 30s).error().limit, Limit::max_requests);
}

}  // namespace
}  // namespace balanceroute::proxy
