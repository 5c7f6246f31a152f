// Laws of the fallback: what makes a policy give way, to which one, and what brings it back.
#include "proxy/fallback.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

using namespace std::chrono_literals;

class FallbackTest : public testing::Test {
 protected:
  void see() { fallback.observe(now, signs); }
  void pass(net::Duration time) {
    now += time;
    see();
  }
  // So many predictions of that chance, of which a part comes true.
  void predict(int outcomes, double chance, int come_true) {
    for (int i = 0; i < outcomes; ++i) signs.predictions->record(chance, i < come_true);
  }

  FallbackParams params;
  net::TimePoint now{1h};
  Fallback fallback{params, now};
  PolicySigns signs;
};

// Law: a predictor that is worse than a constant by the margin, for the whole of a window, takes br_h to br_0; a window
// in which it is no worse brings it back.
TEST_F(FallbackTest, DriftComesAndGoesWithWholeWindows) {
  signs.predictions.emplace();
  see();
  predict(100, 0.9, 20);
  pass(59s);
  EXPECT_FALSE(fallback.cause());
  pass(1s);
  EXPECT_EQ(fallback.cause(), FallbackCause::drift);
  EXPECT_EQ(simpler_policy(*fallback.cause(), "br_h"), "br_0");
  predict(100, 0.2, 20);
  pass(59s);
  EXPECT_TRUE(fallback.holds(FallbackCause::drift));
  pass(1s);
  EXPECT_FALSE(fallback.cause());
  EXPECT_EQ(fallback.times(FallbackCause::drift), 1u);
}

// Law: a little worse is within the margin, and few outcomes say nothing however long they take.
TEST_F(FallbackTest, MarginAndNumberOfOutcomesAreKept) {
  signs.predictions.emplace();
  see();
  predict(100, 0.24, 20);  // 0.1616 against 0.16
  pass(60s);
  EXPECT_FALSE(fallback.cause());
  predict(99, 0.9, 20);
  pass(600s);
  EXPECT_FALSE(fallback.cause());
  predict(1, 0.9, 0);
  see();
  EXPECT_EQ(fallback.cause(), FallbackCause::drift);
}

// Law: where all requests end alike the constant is perfect in hindsight, and a predictor that is nearly so has not
// drifted; one that foretells the contrary has.
TEST_F(FallbackTest, NearlyPerfectIsNoDrift) {
  signs.predictions.emplace();
  see();
  predict(100, 0.05, 0);
  pass(60s);
  EXPECT_FALSE(fallback.cause());
  predict(100, 0.2, 0);
  pass(60s);
  EXPECT_EQ(fallback.cause(), FallbackCause::drift);
  predict(100, 0.08, 0);  // 0.0064: not bad enough to begin, not good enough to end
  pass(60s);
  EXPECT_TRUE(fallback.cause());
  predict(100, 0.05, 0);
  pass(60s);
  EXPECT_FALSE(fallback.cause());
}

// Law: what one policy's predictor has shown says nothing of another's, which counts from its own beginning.
TEST_F(FallbackTest, AnotherPredictorBeginsAnew) {
  signs.predictions.emplace();
  see();
  predict(1'000, 0.9, 20);
  signs.predictions.emplace();
  fallback.reset(now, signs);
  predict(99, 0.9, 20);
  pass(60s);
  pass(60s);
  EXPECT_FALSE(fallback.cause());
}

// Law: one error is enough; the policy decides again after its rest, and after a longer one when it errs again at once.
TEST_F(FallbackTest, ErrorsRestThePolicyLongerAndLonger) {
  for (const net::Duration rest : {60s, 120s, 240s}) {
    ++signs.policy_errors;
    see();
    EXPECT_EQ(fallback.cause(), FallbackCause::policy_error);
    EXPECT_EQ(simpler_policy(*fallback.cause(), "br_fit"), "least_tokens");
    pass(rest - 1s);
    EXPECT_TRUE(fallback.cause());
    pass(1s);
    EXPECT_FALSE(fallback.cause());
    pass(1s);
  }
  pass(3600s);
  ++signs.policy_errors;
  see();
  pass(60s);
  EXPECT_FALSE(fallback.cause());
  EXPECT_EQ(fallback.times(FallbackCause::policy_error), 4u);
}

// Law: what happens before the first look counts too.
TEST_F(FallbackTest, FirstLookSeesWhatHasBeen) {
  signs.slow_rounds = 3;
  pass(1s);
  EXPECT_EQ(fallback.cause(), FallbackCause::slow_rounds);
}

// Law: three slow rounds within a minute, not over a longer time.
TEST_F(FallbackTest, ThreeSlowRoundsAMinute) {
  for (int i = 0; i < 10; ++i) {
    ++signs.slow_rounds;
    pass(31s);
    EXPECT_FALSE(fallback.cause()) << i;
  }
  for (int i = 0; i < 2; ++i) {
    ++signs.slow_rounds;
    pass(1s);
  }
  EXPECT_EQ(fallback.cause(), FallbackCause::slow_rounds);
  signs.slow_rounds += 100;  // of the policy that decides instead
  pass(60s);
  EXPECT_FALSE(fallback.cause());
}

// Law: a ledger that does not fit is the gravest cause; it must last, and so must its end.
TEST_F(FallbackTest, MirrorIsDistrustedAndTrustedWithPatience) {
  ++signs.policy_errors;
  signs.mirror_share = 0.25;
  see();
  pass(29s);
  EXPECT_EQ(fallback.cause(), FallbackCause::policy_error);
  pass(1s);
  EXPECT_EQ(fallback.cause(), FallbackCause::mirror);
  EXPECT_EQ(simpler_policy(*fallback.cause(), "least_tokens"), "round_robin");
  pass(60s);
  signs.mirror_share = 0.2;
  see();
  pass(20s);
  signs.mirror_share = 0.3;
  see();
  signs.mirror_share = 0.2;
  see();
  pass(29s);
  EXPECT_EQ(fallback.cause(), FallbackCause::mirror);
  pass(1s);
  EXPECT_FALSE(fallback.cause());
}

// Law: nobody gives way to what is no simpler.
TEST_F(FallbackTest, SimplePoliciesStay) {
  EXPECT_EQ(simpler_policy(FallbackCause::drift, "br_fit"), "");
  EXPECT_EQ(simpler_policy(FallbackCause::slow_rounds, "least_tokens"), "");
  EXPECT_EQ(simpler_policy(FallbackCause::mirror, "round_robin"), "");
}

// Law: the rests grow to their limit and no further.
TEST_F(FallbackTest, RestsHaveALimit) {
  params.longest_rest_ms = 100'000;
  fallback.set(params);
  for (const net::Duration rest : {60s, 100s, 100s}) {
    ++signs.policy_errors;
    see();
    pass(rest - 1s);
    EXPECT_TRUE(fallback.cause());
    pass(1s);
    EXPECT_FALSE(fallback.cause());
  }
}

// Law: causes are told from the mildest to the gravest, and the gravest is the one that counts.
TEST_F(FallbackTest, CausesHaveAnOrder) {
  FallbackStatus status;
  EXPECT_TRUE(causes_in_force(status).empty());
  status.causes[0].holds = true;
  status.causes[3].holds = true;
  EXPECT_EQ(causes_in_force(status), (std::vector<std::string_view>{"drift", "mirror"}));
}

// Law: another policy begins without a history, and switched off nothing gives way.
TEST_F(FallbackTest, ResetAndSwitch) {
  ++signs.policy_errors;
  see();
  fallback.reset(now, signs);
  see();
  EXPECT_FALSE(fallback.cause());
  params.enabled = false;
  fallback.set(params);
  ++signs.policy_errors;
  see();
  EXPECT_FALSE(fallback.cause());
}

// Law: switched off while a cause holds, it ends.
TEST_F(FallbackTest, SwitchingOffEndsWhatHolds) {
  ++signs.policy_errors;
  see();
  ASSERT_TRUE(fallback.cause());
  params.enabled = false;
  fallback.set(params);
  see();
  EXPECT_FALSE(fallback.cause());
}

}  // namespace
}  // namespace balanceroute::proxy
