// Laws of the rate of departures.
#include "proxy/rate_meter.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

net::TimePoint at(net::Duration since_start) {
  return net::TimePoint{since_start};
}

TEST(RateMeter, KnowsNothingBeforeTheFirstEvent) {
  const RateMeter meter{10s};
  EXPECT_FALSE(meter.per_second(at(5s)));
}

// Law: a steady rate is found from the start on, and forgotten when it ends.
TEST(RateMeter, FindsASteadyRateFromTheStart) {
  RateMeter meter{10s};
  for (int i = 1; i <= 1000; ++i) {
    meter.count(at(i * 100ms));
    if (i == 30) {
      EXPECT_NEAR(*meter.per_second(at(3s)), 10, 1);
    }
  }
  EXPECT_NEAR(*meter.per_second(at(100s)), 10, 0.5);
  EXPECT_LT(*meter.per_second(at(160s)), 0.1);
}

TEST(RateMeter, OneEventIsNoFlood) {
  RateMeter meter{10s};
  meter.count(at(1s));
  EXPECT_LE(*meter.per_second(at(1s)), 1.1);
}

}  // namespace
}  // namespace balanceroute::proxy
