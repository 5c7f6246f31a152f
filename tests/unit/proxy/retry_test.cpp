// Laws of retries: what the budget holds at first, what requests add, and how long one waits.
#include "proxy/retry.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

std::int64_t spent(RetryBudget& budget) {
  std::int64_t count = 0;
  while (budget.spend()) ++count;
  return count;
}

TEST(RetryBudget, OneInTenRequestsIsTriedAgain) {
  const RetryParams params;
  RetryBudget budget{params};
  EXPECT_EQ(spent(budget), params.reserve);
  for (int i = 0; i < 9; ++i) budget.earn(params);
  EXPECT_FALSE(budget.spend());
  budget.earn(params);
  EXPECT_TRUE(budget.spend());
  EXPECT_FALSE(budget.spend());
}

// Law: quiet times save nothing up beyond the reserve.
TEST(RetryBudget, HoldsNoMoreThanItsReserve) {
  const RetryParams params{.reserve = 3};
  RetryBudget budget{params};
  for (int i = 0; i < 1000; ++i) budget.earn(params);
  EXPECT_EQ(spent(budget), 3);
}

TEST(RetryBudget, NothingIsTriedAgainWithoutShareAndReserve) {
  const RetryParams params{.budget_percent = 0, .reserve = 0};
  RetryBudget budget{params};
  for (int i = 0; i < 1000; ++i) budget.earn(params);
  EXPECT_EQ(spent(budget), 0);
}

// Law: the waits spread over the whole of an interval that doubles up to its limit.
TEST(RetryWait, SpreadsUpToABoundThatDoubles) {
  const RetryParams params{.backoff_ms = 10, .longest_backoff_ms = 35};
  Random random{7};
  std::int64_t tries = 0;
  for (const net::Duration bound : {10ms, 20ms, 35ms, 35ms}) {
    net::Duration shortest = 1h;
    net::Duration longest{0};
    for (int i = 0; i < 1000; ++i) {
      const net::Duration wait = retry_wait(params, tries, random);
      shortest = std::min(shortest, wait);
      longest = std::max(longest, wait);
    }
    EXPECT_LT(longest, bound);
    EXPECT_GT(longest, bound * 95 / 100);
    EXPECT_LT(shortest, bound / 20);
    ++tries;
  }
}

// Law: a request that may have broken its worker goes to one more; one that was only in the way to as many as may be.
TEST(RetryParams, StatusesSayWhetherAnotherWorkerIsTried) {
  const RetryParams params;
  for (const int status : {408, 425, 429, 502, 503, 504, 529}) EXPECT_EQ(params.of_status(status), Retry::paid);
  EXPECT_EQ(params.of_status(500), Retry::once);
  for (const int status : {200, 400, 401, 404, 409, 422, 499, 501}) EXPECT_EQ(params.of_status(status), Retry::never);
  EXPECT_EQ(RetryParams{.statuses = {418}}.of_status(418), Retry::paid);
}

}  // namespace
}  // namespace balanceroute::proxy
