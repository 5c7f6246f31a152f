#include "proxy/endpoint_health.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

class EndpointHealthTest : public testing::Test {
 protected:
  bool sees(Evidence evidence, bool lives = false) { return health.observe(evidence, now, lives); }
  void come_up() { ASSERT_TRUE(sees(Evidence::probe_answered)); }
  void pass(net::Duration time) {
    now += time;
    health.tick(now);
  }

  HealthParams params{
      .unhealthy_after = 3, .healthy_after = 2, .hold_after = 2, .hold_ms = 1000, .longest_hold_ms = 3000};
  net::TimePoint now{};
  EndpointHealth health{params};
};

// Law: an engine that never answered is unseen, whatever fails; its first answer makes it one that takes work.
TEST_F(EndpointHealthTest, FirstAnswerBringsItUp) {
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(sees(Evidence::probe_failed));
  EXPECT_EQ(health.state(), HealthState::unseen);
  come_up();
  EXPECT_EQ(health.state(), HealthState::up);
}

// Law: there are thresholds both ways, each for evidence in a row.
TEST_F(EndpointHealthTest, ThresholdsBothWays) {
  come_up();
  EXPECT_FALSE(sees(Evidence::probe_failed));
  EXPECT_FALSE(sees(Evidence::request_unreachable));
  EXPECT_FALSE(sees(Evidence::probe_answered));  // the row begins anew
  EXPECT_FALSE(sees(Evidence::probe_failed));
  EXPECT_FALSE(sees(Evidence::probe_late));
  EXPECT_TRUE(sees(Evidence::request_unreachable));
  EXPECT_EQ(health.state(), HealthState::down);
  EXPECT_FALSE(sees(Evidence::probe_answered));
  EXPECT_FALSE(sees(Evidence::probe_failed));
  EXPECT_FALSE(sees(Evidence::probe_answered));
  EXPECT_TRUE(sees(Evidence::probe_answered));
  EXPECT_EQ(health.state(), HealthState::up);
}

// Law: a busy engine may be late with its health page as long as its tokens come.
TEST_F(EndpointHealthTest, LateProbesOfAnEngineThatLivesSayNothing) {
  come_up();
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(sees(Evidence::probe_late, true));
  EXPECT_EQ(health.state(), HealthState::up);
  for (int i = 0; i < 2; ++i) EXPECT_FALSE(sees(Evidence::probe_late));
  EXPECT_TRUE(sees(Evidence::probe_late));
}

// Law: an engine that answers probes and fails requests is held, tried again, and held for twice as long, to a limit,
// if it fails at once; a complete answer forgives it.
TEST_F(EndpointHealthTest, FailedRequestsHoldItForLongerAndLonger) {
  come_up();
  EXPECT_FALSE(sees(Evidence::request_failed));
  EXPECT_TRUE(sees(Evidence::request_failed));
  for (const auto hold : {1000ms, 2000ms, 3000ms, 3000ms}) {
    EXPECT_EQ(health.state(), HealthState::held);
    EXPECT_FALSE(sees(Evidence::probe_answered));  // that is not what is wrong with it
    pass(hold - 1ms);
    EXPECT_EQ(health.state(), HealthState::held);
    pass(1ms);
    EXPECT_EQ(health.state(), HealthState::up);
    EXPECT_TRUE(health.on_trial());
    EXPECT_TRUE(sees(Evidence::request_failed));  // one is enough now
  }
  pass(3000ms);
  EXPECT_FALSE(sees(Evidence::request_complete));
  EXPECT_TRUE(health.on_trial());
  EXPECT_TRUE(sees(Evidence::request_complete));
  EXPECT_FALSE(health.on_trial());
  EXPECT_EQ(health.times_held(), 5u);
  EXPECT_FALSE(sees(Evidence::request_failed));
  EXPECT_TRUE(sees(Evidence::request_failed));
  EXPECT_EQ(health.due(), now + 1000ms);
}

// Law: a trial in which nothing fails ends by itself, so that an idle fleet gets its worker back.
TEST_F(EndpointHealthTest, TrialEndsWithTime) {
  come_up();
  for (int i = 0; i < 2; ++i) sees(Evidence::request_failed);
  pass(1000ms);
  ASSERT_TRUE(health.on_trial());
  pass(999ms);
  EXPECT_TRUE(health.on_trial());
  pass(1ms);
  EXPECT_FALSE(health.on_trial());
  EXPECT_EQ(health.state(), HealthState::up);
  EXPECT_EQ(health.due(), net::kNever);
  EXPECT_FALSE(sees(Evidence::request_failed));  // two in a row again
}

// Law: a rank that its engine does not know is held at once.
TEST_F(EndpointHealthTest, RejectedRankIsHeldAtOnce) {
  come_up();
  EXPECT_TRUE(sees(Evidence::rank_rejected));
  EXPECT_EQ(health.state(), HealthState::held);
}

// Law: streams that begin well and break count as failures, however many begin.
TEST_F(EndpointHealthTest, OnlyWholeAnswersForgive) {
  come_up();
  sees(Evidence::request_failed);
  sees(Evidence::probe_answered);
  EXPECT_TRUE(sees(Evidence::request_failed));
}

// Law: without probes it begins up, and one that cannot be reached is tried again when its time is over.
TEST_F(EndpointHealthTest, WithoutProbesTimeTriesAgain) {
  params.interval_ms = 0;
  EndpointHealth blind{params};
  EXPECT_EQ(blind.state(), HealthState::up);
  for (int i = 0; i < 3; ++i) blind.observe(Evidence::request_unreachable, now);
  EXPECT_EQ(blind.state(), HealthState::down);
  EXPECT_TRUE(blind.tick(now + 1000ms));
  EXPECT_TRUE(blind.observe(Evidence::request_unreachable, now + 1000ms));
  EXPECT_EQ(blind.due(), now + 3000ms);
}

// Law: with probes time alone brings nothing back that cannot be reached.
TEST_F(EndpointHealthTest, WithProbesOnlyAnswersBringItBack) {
  come_up();
  for (int i = 0; i < 3; ++i) sees(Evidence::probe_failed);
  EXPECT_EQ(health.due(), net::kNever);
  pass(24h);
  EXPECT_EQ(health.state(), HealthState::down);
}

}  // namespace
}  // namespace balanceroute::proxy
