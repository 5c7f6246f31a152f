// Laws of the figures of a run, by numbers small enough to count by hand.
#include "sim/run_meter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "sim/power_model.hpp"

namespace balanceroute::sim {
namespace {

using std::chrono::milliseconds;

// Two workers of two slots; a step lasts 10 ms and 1 ms a token.
const Fleet kFleet{.groups = 1, .workers = 2, .slots = 2, .step_time = {.fixed_ms = 10, .per_token_ms = 1}};

void record(RunMeter& meter, std::vector<Tokens> loads, std::int64_t active, std::size_t waiting = 0) {
  const Tokens envelope = std::max(loads[0], loads[1]);
  meter.step({.loads = loads, .envelope = envelope, .active = active}, kFleet.step_time.duration(envelope),
             {.waiting = waiting});
}

// Law: every figure is zero before the first step, and such a run supports no claim.
TEST(RunMeter, IsZeroWithoutSteps) {
  const RunResult result = RunMeter{kFleet}.result();
  EXPECT_TRUE(result.non_stationary);
  EXPECT_EQ(result.steps, 0);
  EXPECT_EQ(result.throughput_tokens_per_s, 0);
  EXPECT_EQ(result.bound_share, 0);
  EXPECT_EQ(result.energy_joule_per_token, 0);
  EXPECT_EQ(result.tpot_ms.count, 0U);
}

// Law: throughput is tokens over time; the bound is that of steps at their mean load.
//   loads 30, 10: 40 ms, 30 ms at the mean;  loads 20, 20: 30 ms, 30 ms at the mean;  3 and 2 sequences.
TEST(RunMeter, ComparesStepsWithTheirMeanLoad) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{30}, Tokens{10}}, 3);
  record(meter, {Tokens{20}, Tokens{20}}, 2);
  const RunResult result = meter.result();
  EXPECT_EQ(result.steps, 2);
  EXPECT_DOUBLE_EQ(result.step_ms_mean, 35);
  EXPECT_DOUBLE_EQ(result.spread_mean_tokens, 10);
  EXPECT_DOUBLE_EQ(result.imbalance_mean_tokens, 10);
  EXPECT_DOUBLE_EQ(result.load_idle_fraction, 10.0 / 50);
  EXPECT_NEAR(result.barrier_idle_fraction, 10.0 / 70, 1e-12);
  EXPECT_NEAR(result.throughput_tokens_per_s, 5 / 0.070, 1e-9);
  EXPECT_NEAR(result.bound_throughput_tokens_per_s, 5 / 0.060, 1e-9);
  EXPECT_NEAR(result.bound_share, 6.0 / 7, 1e-12);
  EXPECT_NEAR(result.active_mean, (3 * 40 + 2 * 30) / 70.0, 1e-12);
  EXPECT_NEAR(result.busy_fraction, result.active_mean / 4, 1e-12);
}

// Law: throughput is of the tokens that answers keep: all that a step brings, less what is beyond their ends.
TEST(RunMeter, CountsTheTokensThatAreKept) {
  RunMeter meter{kFleet};
  const std::vector<Tokens> loads{Tokens{30}, Tokens{30}};
  meter.step({.loads = loads, .envelope = Tokens{30}, .active = 3, .growth = Tokens{2}}, std::chrono::milliseconds{40},
             {});
  meter.thrown_away(Tokens{1});
  EXPECT_NEAR(meter.result().throughput_tokens_per_s, 5 / 0.040, 1e-9);
}

// Law: the time that workers wait is by their own measured step times, which need not lie on a line.
//   loads 30, 10: the step takes 40 ms, the other worker needs 12 ms of it.
TEST(RunMeter, TakesMeasuredStepTimes) {
  Fleet fleet = kFleet;
  fleet.step_table = std::make_shared<const StepTable>(
      std::vector<StepTable::Point>{{.load = 10, .ms = 12}, {.load = 20, .ms = 13}, {.load = 30, .ms = 40}});
  RunMeter meter{fleet};
  const std::vector loads{Tokens{30}, Tokens{10}};
  EXPECT_EQ(fleet.step_duration({.loads = loads, .envelope = Tokens{30}}), milliseconds{40});
  meter.step({.loads = loads, .envelope = Tokens{30}, .active = 2},
             fleet.step_duration({.loads = loads, .envelope = Tokens{30}}), {});
  EXPECT_NEAR(meter.result().barrier_idle_fraction, 14.0 / 40, 1e-12);
}

// Law: idle time counts as time without sequences, in throughput and bound alike.
TEST(RunMeter, CountsIdleTime) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{30}, Tokens{10}}, 3);
  meter.idle(milliseconds{60});
  const RunResult result = meter.result();
  EXPECT_NEAR(result.throughput_tokens_per_s, 3 / 0.100, 1e-9);
  EXPECT_NEAR(result.bound_throughput_tokens_per_s, 3 / 0.090, 1e-9);
  EXPECT_NEAR(result.active_mean, 3 * 40 / 100.0, 1e-12);
  EXPECT_DOUBLE_EQ(result.step_ms_mean, 40);
}

// Law: groups run beside one another: time is that of one, tokens and sequences are those of all.
TEST(RunMeter, GroupsShareTheTime) {
  Fleet two = kFleet;
  two.groups = 2;
  RunMeter meter{two};
  for (int group = 0; group < 2; ++group) record(meter, {Tokens{30}, Tokens{10}}, 3);
  const RunResult result = meter.result();
  EXPECT_NEAR(result.throughput_tokens_per_s, 6 / 0.040, 1e-9);
  EXPECT_NEAR(result.active_mean, 6, 1e-12);
  EXPECT_NEAR(result.busy_fraction, 6.0 / 8, 1e-12);
}

// Law: a slot is busy or idle, and idle for want of a request or although one waits.
TEST(RunMeter, TellsIdleSlotsThatRequestsWaitFor) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{30}, Tokens{10}}, 1, 2);  // 40 ms, three free slots, two of them waited for
  record(meter, {Tokens{30}, Tokens{10}}, 3, 9);  // 40 ms, one free slot
  meter.idle(milliseconds{20});
  const RunResult result = meter.result();
  EXPECT_NEAR(result.busy_fraction, (1 + 3) * 40 / 400.0, 1e-12);
  EXPECT_NEAR(result.slot_idle_fraction, 1 - result.busy_fraction, 1e-12);
  EXPECT_NEAR(result.slot_idle_waiting_fraction, (2 + 1) * 40 / 400.0, 1e-12);
}

// Law: a run is stationary if the mean number of active sequences of its halves differs by at most 5 %.
TEST(RunMeter, MarksWhatIsNotStationary) {
  const auto marked = [](std::int64_t first, std::int64_t second) {
    RunMeter meter{kFleet};
    record(meter, {Tokens{20}, Tokens{20}}, first);
    meter.enter_half(1);
    record(meter, {Tokens{20}, Tokens{20}}, second);
    return meter.result().non_stationary;
  };
  EXPECT_FALSE(marked(100, 100));
  EXPECT_FALSE(marked(100, 105));
  EXPECT_FALSE(marked(105, 100));
  EXPECT_TRUE(marked(100, 106));
  EXPECT_TRUE(marked(106, 100));
  EXPECT_TRUE(marked(100, 0));
}

// Law: time per output token is that after the first one; one token has none.
TEST(RunMeter, TimesTokensAfterTheFirst) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{20}, Tokens{20}}, 1);
  meter.finished(milliseconds{0}, {.prompt = Tokens{5}, .output = Tokens{1}});
  EXPECT_EQ(meter.result().tpot_ms.count, 0U);
  EXPECT_EQ(meter.result().tpot_ms.mean, 0);
  meter.finished(milliseconds{90}, {.prompt = Tokens{5}, .output = Tokens{4}});
  EXPECT_EQ(meter.result().tpot_ms.count, 1U);
  EXPECT_DOUBLE_EQ(meter.result().tpot_ms.mean, 30);
}

TEST(RunMeter, CountsWaitsAndForcedAdmissions) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{20}, Tokens{20}}, 1);
  meter.admitted(milliseconds{10}, false, {.prompt = Tokens{5}, .output = Tokens{200}});
  meter.admitted(milliseconds{30}, true, {.prompt = Tokens{1000}, .output = Tokens{200}});
  meter.first_token(milliseconds{70});
  const RunResult result = meter.result();
  EXPECT_DOUBLE_EQ(result.pool_wait_ms.mean, 20);
  EXPECT_DOUBLE_EQ(result.pool_wait_ms.max, 30);
  EXPECT_EQ(result.forced_admissions, 1);
  EXPECT_DOUBLE_EQ(result.wait_by_prompt_ms[0].mean, 10);
  EXPECT_DOUBLE_EQ(result.wait_by_prompt_ms[1].mean, 30);
  EXPECT_EQ(result.wait_by_output_ms[1].count, 2U);
  EXPECT_DOUBLE_EQ(result.ttft_ms.p50, 70);
}

// Law: the most loaded worker draws the peak, an idle one the idle power, half a load in between by the power law.
TEST(PowerModel, FollowsUtilisation) {
  EXPECT_DOUBLE_EQ(worker_watts(0), 100);
  EXPECT_DOUBLE_EQ(worker_watts(1), 400);
  EXPECT_NEAR(worker_watts(0.5), 100 + 300 * 0.6155722, 1e-4);
  const std::vector loads{Tokens{10}, Tokens{5}, Tokens{0}};
  EXPECT_NEAR(group_watts(loads, Tokens{10}), 400 + worker_watts(0.5) + 100, 1e-9);
  EXPECT_DOUBLE_EQ(group_watts(std::vector{Tokens{0}, Tokens{0}}, Tokens{0}), 200);
}

// Law: energy is power over time, idle time included, a token: 2 workers, 40 ms at 400 W and 60 ms idle.
TEST(RunMeter, IntegratesEnergy) {
  RunMeter meter{kFleet};
  record(meter, {Tokens{30}, Tokens{30}}, 4);
  meter.idle(milliseconds{60});
  EXPECT_NEAR(meter.result().energy_joule_per_token, (800 * 0.040 + 200 * 0.060) / 4, 1e-9);
}

}  // namespace
}  // namespace balanceroute::sim
