// Laws of a group in real time, on a clock that the test moves.
#include "emulator/stepping_group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <optional>
#include <vector>

namespace balanceroute::emulator {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::IsEmpty;

class Recorder final : public TokenSink {
 public:
  void on_token(Tokens number, bool last) override {
    numbers.push_back(number.count());
    finished = last;
  }
  void on_recomputed() override { recomputed = true; }
  std::vector<std::int64_t> numbers;
  bool finished = false;
  bool recomputed = false;
};

constexpr StepTime kStepTime{.fixed_ms = 10, .per_token_ms = 0.01};

// A step of load L lasts 10 ms + L/100 ms.
class SteppingGroupTest : public testing::Test {
 protected:
  SteppingGroup::Ticket submit(std::size_t rank, std::int64_t prompt, std::int64_t output, Recorder& sink,
                               std::int64_t age = 0) {
    return group.submit(rank, {RequestId{1}, Tokens{prompt}, Tokens{output}, Tokens{age}}, Tokens{prompt}, sink);
  }
  void advance(net::Duration by) {
    clock.advance(by);
    thread.timers().fire_due(clock.now());
  }
  // Runs the deferred start of a group that was idle.
  void begin() { advance(milliseconds{0}); }
  std::size_t armed_timers() { return thread.timers().size(); }

  net::ManualClock clock;
  net::IoThread thread{"test", clock};
  SteppingGroup group{thread, {.ranks = 2, .slots = 2, .step_time = kStepTime, .step_log = 2}};
};

// Law: a token comes when the step of its group ends, not before; the most loaded rank sets the length.
TEST_F(SteppingGroupTest, TokensComeAtTheEndOfTheStep) {
  Recorder heavy;
  Recorder light;
  const auto first = submit(0, 1000, 5, heavy);
  const auto second = submit(1, 100, 5, light);
  begin();
  advance(milliseconds{20} - std::chrono::nanoseconds{1});
  EXPECT_THAT(light.numbers, IsEmpty());
  advance(std::chrono::nanoseconds{1});
  EXPECT_THAT(heavy.numbers, ElementsAre(1));
  EXPECT_THAT(light.numbers, ElementsAre(1));
  advance(milliseconds{20});  // the next one lasts 20.01 ms
  EXPECT_THAT(light.numbers, ElementsAre(1));
  advance(microseconds{10});
  EXPECT_THAT(light.numbers, ElementsAre(1, 2));
}

// Law: what is submitted in one turn of the thread enters the same step.
TEST_F(SteppingGroupTest, OneTurnEntersOneStep) {
  Recorder a;
  Recorder b;
  const auto first = submit(0, 1, 2, a);
  const auto second = submit(0, 1, 2, b);
  begin();
  EXPECT_EQ(group.model().active(0), 2);
}

// Law: a group without sequences does not spin, and wakes up for the next one.
TEST_F(SteppingGroupTest, IdleGroupArmsNoTimer) {
  Recorder sink;
  {
    const auto ticket = submit(0, 0, 1, sink);
    EXPECT_EQ(armed_timers(), 1U);
    begin();
    advance(milliseconds{10});
    EXPECT_TRUE(sink.finished);
  }
  EXPECT_EQ(armed_timers(), 0U);
  EXPECT_EQ(group.measures().loads.steps(), 1);
  advance(milliseconds{500});
  Recorder next;
  const auto ticket = submit(1, 0, 1, next);
  begin();
  advance(milliseconds{10});
  EXPECT_TRUE(next.finished);
  EXPECT_EQ(group.measures().late_steps, 0);
}

// Law: an age counts as load at once, and only the rest is generated.
TEST_F(SteppingGroupTest, SequenceBeginsInItsMiddle) {
  Recorder sink;
  const auto ticket = submit(0, 1000, 5, sink, 3);
  begin();
  EXPECT_EQ(group.model().load(0), Tokens{1003});
  advance(microseconds{20'030});
  advance(microseconds{20'040});
  EXPECT_THAT(sink.numbers, ElementsAre(4, 5));
  EXPECT_TRUE(sink.finished);
}

// Law: withdrawing takes the sequence out within the step, and frees its slot for the next one.
TEST_F(SteppingGroupTest, WithdrawnSequenceGetsNothingMore) {
  Recorder gone;
  Recorder stays;
  Recorder waits;
  std::optional ticket{submit(0, 0, 9, gone)};
  const auto second = submit(0, 0, 9, stays);
  const auto third = submit(0, 0, 9, waits);
  begin();
  advance(milliseconds{4});
  ticket.reset();
  EXPECT_EQ(group.model().active(0), 1);
  advance(milliseconds{6});
  EXPECT_THAT(gone.numbers, IsEmpty());
  EXPECT_THAT(stays.numbers, ElementsAre(1));
  advance(milliseconds{20});
  EXPECT_THAT(waits.numbers, ElementsAre(1));
}

// Law: a step counts as late above the larger of 1 ms and a tenth of its length.
TEST_F(SteppingGroupTest, LateStepsAreCounted) {
  Recorder sink;
  const auto ticket = submit(0, 1000, 9, sink);  // 20.00, 20.01, 20.02, ... ms
  begin();
  advance(milliseconds{22});  // 2 ms late: exactly a tenth
  EXPECT_EQ(group.measures().late_steps, 0);
  advance(milliseconds{21});  // planned for 40.01, ended at 43
  EXPECT_EQ(group.measures().late_steps, 1);
  EXPECT_EQ(group.measures().largest_lateness, microseconds{2'990});
}

// Law: small delays do not add up, and a late step is not made up for.
TEST_F(SteppingGroupTest, NextStepStartsAtThePlannedEndUnlessLate) {
  Recorder sink;
  const auto ticket = submit(0, 0, 9, sink);  // 10.00, 10.01, 10.02 ms
  begin();
  advance(microseconds{10'900});  // 0.9 ms late, the next ends at 20.01
  advance(microseconds{9'110});
  EXPECT_THAT(sink.numbers, ElementsAre(1, 2));
  advance(microseconds{15'000});  // planned for 30.03, ended at 35.01: the next lasts 10.03 from here
  EXPECT_THAT(sink.numbers, ElementsAre(1, 2, 3));
  advance(microseconds{10'029});
  EXPECT_THAT(sink.numbers, ElementsAre(1, 2, 3));
  advance(microseconds{1});
  EXPECT_THAT(sink.numbers, ElementsAre(1, 2, 3, 4));
}

// Law: a window measures its own steps: loads 300 and 100, then 301 and 101.
TEST_F(SteppingGroupTest, MeasuresItsOwnLoads) {
  Recorder a;
  Recorder b;
  const auto first = submit(0, 300, 9, a);
  const auto second = submit(1, 100, 9, b);
  begin();
  advance(milliseconds{13});
  advance(microseconds{13'010});
  const auto& loads = group.measures().loads;
  EXPECT_EQ(loads.steps(), 2);
  EXPECT_DOUBLE_EQ(loads.spread_mean(), 200);
  EXPECT_DOUBLE_EQ(loads.load_idle_fraction(), 200.0 / 601);
  EXPECT_DOUBLE_EQ(loads.barrier_idle_fraction(group.step_time()), 2.0 / (13 + 13.01));
  EXPECT_EQ(group.measures().tokens, 4);
  group.reset_measures();
  EXPECT_EQ(group.measures().loads.steps(), 0);
  EXPECT_EQ(group.counters(0).generated_tokens, 2);
}

// Law: an engine step of a rank has its entering prompts and one token a sequence; dummy steps do not count.
TEST_F(SteppingGroupTest, CountsTokensOfEngineSteps) {
  Recorder a;
  const auto first = submit(0, 300, 9, a);
  begin();
  advance(milliseconds{13});
  const auto& steps = group.counters(0).step_tokens;
  EXPECT_EQ(steps.count(), 2);  // the second has begun
  EXPECT_EQ(steps.sum(), 301 + 1);
  EXPECT_EQ(group.counters(1).step_tokens.count(), 0);
  EXPECT_EQ(group.counters(0).prompt_tokens, 300);
}

// Law: prompts whose KV came from elsewhere are in no engine step, and are told apart.
TEST_F(SteppingGroupTest, TransferredPromptsAreNotComputed) {
  Recorder sink;
  const auto ticket = group.submit(0, {RequestId{1}, Tokens{300}, Tokens{9}}, Tokens{0}, sink);
  begin();
  EXPECT_EQ(group.counters(0).step_tokens.sum(), 1);
  EXPECT_EQ(group.counters(0).prompt_tokens, 300);
  EXPECT_EQ(group.counters(0).computed_prompt_tokens, 0);
}

// Law: the log has the last steps with their loads, and no more than it may keep.
TEST_F(SteppingGroupTest, RemembersTheLastSteps) {
  Recorder sink;
  const auto ticket = submit(1, 100, 9, sink);
  begin();
  for (const auto length : {11'000, 11'010, 11'020}) advance(microseconds{length});
  ASSERT_EQ(group.steps().size(), 2U);
  EXPECT_EQ(group.steps()[0].number, 2);
  EXPECT_EQ(group.steps()[1].number, 3);
  EXPECT_THAT(group.steps()[1].loads, ElementsAre(Tokens{0}, Tokens{102}));
  EXPECT_THAT(group.steps()[1].active, ElementsAre(0, 1));
  EXPECT_EQ(group.steps()[1].length, microseconds{11'020});
  EXPECT_EQ(group.steps()[1].lateness, milliseconds{0});
}

// Groups with settings of their own.
class FullGroupTest : public SteppingGroupTest {
 protected:
  static GroupSettings settings(bool recompute_stop) {
    return {.ranks = 1,
            .slots = 2,
            .step_time = {.fixed_ms = 10},
            .kv_capacity = Tokens{205},
            .prefill_time = {.fixed_ms = 1, .per_token_ms = 0.1},
            .recompute_stop = recompute_stop};
  }
};

// Law: prompts that a rank computes lengthen the step, a transferred one does not.
TEST_F(FullGroupTest, PrefillTakesTimeOfTheStep) {
  SteppingGroup own{thread, settings(false)};
  Recorder a;
  const auto first = own.submit(0, {RequestId{1}, Tokens{50}, Tokens{9}}, Tokens{50}, a);
  begin();
  advance(microseconds{15'999});
  EXPECT_THAT(a.numbers, IsEmpty());
  advance(microseconds{1});
  EXPECT_THAT(a.numbers, ElementsAre(1));
  Recorder b;
  const auto second = own.submit(0, {RequestId{2}, Tokens{50}, Tokens{9}}, Tokens{0}, b);
  advance(milliseconds{10});
  advance(milliseconds{10});
  EXPECT_THAT(b.numbers, ElementsAre(1));
}

// Law: on a full rank the youngest steps back and computes everything again when it fits: 100 + 100 of prompts have
// room for three tokens each, not for four.
TEST_F(FullGroupTest, YoungestIsPreempted) {
  SteppingGroup own{thread, settings(false)};
  Recorder a;
  Recorder b;
  std::optional first{own.submit(0, {RequestId{1}, Tokens{100}, Tokens{9}}, Tokens{0}, a)};
  const auto second = own.submit(0, {RequestId{2}, Tokens{100}, Tokens{9}}, Tokens{0}, b);
  begin();
  for (int step = 0; step < 4; ++step) advance(milliseconds{10});
  EXPECT_THAT(a.numbers, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(b.numbers, ElementsAre(1, 2));
  EXPECT_EQ(own.counters(0).preemptions, 1);
  first.reset();
  const auto steps = own.counters(0).step_tokens.sum();
  advance(milliseconds{10});
  EXPECT_EQ(own.counters(0).step_tokens.sum() - steps, 103);  // 100 + 2 of KV, and the new token
  EXPECT_EQ(own.counters(0).prompt_tokens, 200);
}

// Law: with recompute_stop the youngest is told and gone.
TEST_F(FullGroupTest, YoungestIsToldToComeAgain) {
  SteppingGroup own{thread, settings(true)};
  Recorder a;
  Recorder b;
  const auto first = own.submit(0, {RequestId{1}, Tokens{100}, Tokens{9}}, Tokens{0}, a);
  const auto second = own.submit(0, {RequestId{2}, Tokens{100}, Tokens{9}}, Tokens{0}, b);
  begin();
  for (int step = 0; step < 4; ++step) advance(milliseconds{10});
  EXPECT_TRUE(b.recomputed);
  EXPECT_FALSE(a.recomputed);
  EXPECT_THAT(b.numbers, ElementsAre(1, 2));
  EXPECT_EQ(own.model().queued(0), 0);
  EXPECT_EQ(own.counters(0).recomputed_stops, 1);
}

}  // namespace
}  // namespace balanceroute::emulator
