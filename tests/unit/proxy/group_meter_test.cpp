#include "proxy/group_meter.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "stats/step_time.hpp"

namespace balanceroute::proxy {
namespace {

std::vector<Tokens> loads_of(std::initializer_list<std::int64_t> counts) {
  std::vector<Tokens> loads;
  for (const std::int64_t count : counts) loads.emplace_back(count);
  return loads;
}

void step(GroupMeter& meter, const std::vector<Tokens>& loads, std::int64_t steps, double seconds) {
  const std::vector<std::int32_t> sequences(loads.size(), 3);
  meter.see(loads, sequences);
  meter.stepped(Steps{steps}, seconds);
}

TEST(GroupMeter, NothingHasHappenedAtFirst) {
  const GroupMeasures measures = GroupMeter{}.measures();
  EXPECT_EQ(measures.steps, 0);
  EXPECT_EQ(measures.load_idle_fraction, 0);
  EXPECT_EQ(measures.barrier_idle_fraction, 0);
}

// Law: the sums are over steps, and each step counts as often as it was taken.
TEST(GroupMeter, AddsUpEnvelopesAndMeans) {
  GroupMeter meter;
  step(meter, loads_of({10, 7, 6, 5}), 3, 0.03);
  step(meter, loads_of({4, 4, 4, 4}), 1, 0.01);
  const GroupMeasures measures = meter.measures();
  EXPECT_DOUBLE_EQ(measures.steps, 4);
  EXPECT_DOUBLE_EQ(measures.tokens_read, 34);
  EXPECT_DOUBLE_EQ(measures.tokens_read_mean, 25);
  EXPECT_DOUBLE_EQ(measures.seconds, 0.04);
}

// Law: while the price of a token is not known the barrier idle share is the most it can be, the load idle share.
TEST(GroupMeter, WithoutAPriceTheBarrierCostsWhatLoadSays) {
  GroupMeter meter;
  step(meter, loads_of({100, 50}), 1, 0.02);
  const GroupMeasures measures = meter.measures();
  EXPECT_EQ(measures.source, PriceSource::modelled);
  EXPECT_DOUBLE_EQ(measures.load_idle_fraction, 0.25);
  EXPECT_DOUBLE_EQ(measures.barrier_idle_fraction, 0.25);
}

// Law: once it is known, only the part of a step that load pays for can be idle.
TEST(GroupMeter, WithAPriceTheFixedPartIsNotIdle) {
  constexpr StepTime kEngine{.fixed_ms = 10, .per_token_ms = 1e-4};
  GroupMeter meter;
  for (int i = 0; i < 4000; ++i) {
    const Tokens envelope{80'000 + 1000 * (i % 41)};
    step(meter, {envelope, Tokens{envelope.count() / 2}}, 1, kEngine.milliseconds(envelope) / 1000);
  }
  const GroupMeasures measures = meter.measures();
  EXPECT_EQ(measures.source, PriceSource::measured);
  EXPECT_NEAR(measures.per_token_ms, 1e-4, 1e-6);
  EXPECT_NEAR(measures.load_idle_fraction, 0.25, 0.001);
  EXPECT_NEAR(measures.barrier_idle_fraction, 0.125, 0.002);  // load is half of a step of 20 ms
}

// Law: the shares are of late; an imbalance of long ago has no part in them.
TEST(GroupMeter, ForgetsWhatWasLongAgo) {
  GroupMeter meter;
  step(meter, loads_of({100, 0}), 1000, 10.0);
  for (int i = 0; i < 20; ++i) step(meter, loads_of({100, 100}), static_cast<std::int64_t>(GroupMeter::kHalfLife), 3);
  EXPECT_LT(meter.measures().load_idle_fraction, 1e-4);
  EXPECT_LT(meter.measures().barrier_idle_fraction, 1e-4);
}

// Law: a step's time is that of many, however early or late single ones are seen.
TEST(GroupMeter, StepsSeenEarlyAndLateAreOfOneLength) {
  GroupMeter meter;
  for (int i = 0; i < 200; ++i) step(meter, loads_of({100, 50}), 1, i % 2 == 0 ? 0.001 : 0.039);
  EXPECT_NEAR(meter.measures().step_seconds, 0.02, 0.001);
}

// Law: the trail has the means of blocks of steps: their time, the heaviest worker's load and sequences, all loads.
TEST(GroupMeter, TrailHasBlocks) {
  GroupMeter meter;
  const std::vector<std::int32_t> sequences{5, 7, 6};
  for (int i = 0; i < 4; ++i) {
    meter.see(loads_of({100, 300, 200}), sequences);
    meter.stepped(Steps{1}, 0.02);
    meter.see(loads_of({500, 300, 200}), sequences);
    meter.stepped(Steps{1}, 0.04);
  }
  ASSERT_EQ(meter.trail().blocks().size(), 1u);
  const StepBlock& block = meter.trail().blocks().front();
  EXPECT_DOUBLE_EQ(block.step_ms, 30);
  EXPECT_DOUBLE_EQ(block.max_tokens, 400);
  EXPECT_DOUBLE_EQ(block.sequences, 6);
  EXPECT_DOUBLE_EQ(block.total_tokens, 800);
}

// Law: of steps that are seen together the trail has the loads that they grew to.
TEST(GroupMeter, TrailKnowsThatLoadsGrow) {
  GroupMeter meter;
  meter.see(loads_of({100, 200}), std::vector<std::int32_t>{1, 2});
  meter.stepped(Steps{9}, 0.18);
  ASSERT_EQ(meter.trail().blocks().size(), 1u);
  EXPECT_DOUBLE_EQ(meter.trail().blocks().front().max_tokens, 200 + 4 * 2);
  EXPECT_DOUBLE_EQ(meter.trail().blocks().front().total_tokens, 300 + 4 * 3);
}

// Law: a trail is bounded; the latest stay.
TEST(StepTrail, KeepsTheLatest) {
  StepTrail trail;
  for (std::size_t i = 0; i < StepTrail::kMost + 2; ++i) trail.add({.step_ms = static_cast<double>(i)});
  EXPECT_EQ(trail.blocks().size(), StepTrail::kMost);
  EXPECT_EQ(trail.blocks().front().step_ms, 2);
}

// Law: a pause is no step: its time is in no sum.
TEST(GroupMeter, APauseIsNoStep) {
  GroupMeter meter;
  for (int i = 0; i < 100; ++i) step(meter, loads_of({100, 50}), 1, 0.02);
  step(meter, loads_of({100, 50}), 1, 30.0);
  EXPECT_NEAR(meter.measures().seconds, 2, 1e-9);
  EXPECT_DOUBLE_EQ(meter.measures().steps, 101);
}

// Law: a burst that is read late changes nothing: its steps took the time from the last one that was read in time.
TEST(GroupMeter, ABurstThatIsReadLateChangesNothing) {
  GroupMeter meter;
  for (int i = 0; i < 300; ++i) {
    step(meter, loads_of({100, 50}), 1, 0.21);
    step(meter, loads_of({100, 50}), 10, 0.01);
  }
  EXPECT_NEAR(meter.measures().step_seconds, 0.02, 0.002);
}

}  // namespace
}  // namespace balanceroute::proxy
