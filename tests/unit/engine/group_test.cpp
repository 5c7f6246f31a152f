// Laws of the barrier-synchronised group: the order of a step, loads, FIFO, ends, aborts.
#include "engine/group.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

namespace balanceroute::engine {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Sequence sequence(std::uint64_t id, std::int64_t prompt, std::int64_t output, std::int64_t age = 0) {
  return {RequestId{id}, Tokens{prompt}, Tokens{output}, Tokens{age}};
}

std::vector<std::uint64_t> ids(std::span<const SequenceMove> moves) {
  std::vector<std::uint64_t> result;
  for (const auto& move : moves) result.push_back(move.id.value());
  return result;
}

std::vector<std::int64_t> loads(const Group& group) {
  std::vector<std::int64_t> result;
  for (const Tokens load : group.step_loads().loads) result.push_back(load.count());
  return result;
}

// One whole step; what left at its start and what entered.
struct StepTold {
  std::vector<std::uint64_t> left;
  std::vector<std::uint64_t> entered;
};
StepTold step(Group& group) {
  StepTold told;
  told.left = ids(group.leave());
  told.entered = ids(group.enter());
  group.advance();
  return told;
}

// Law: a sequence of o tokens occupies its slot for exactly o steps and reads s, s+1, ..., s+o-1 tokens in them.
TEST(Group, SequenceReadsItsPromptAndWhatItGenerated) {
  Group group{1, 1};
  group.bind(0, sequence(7, 10, 3));
  EXPECT_THAT(step(group).entered, ElementsAre(7));
  EXPECT_THAT(loads(group), ElementsAre(10));
  step(group);
  EXPECT_THAT(loads(group), ElementsAre(11));
  step(group);
  EXPECT_THAT(loads(group), ElementsAre(12));
  EXPECT_THAT(step(group).left, ElementsAre(7));
  EXPECT_THAT(loads(group), ElementsAre(0));
  EXPECT_EQ(group.active(), 0);
}

// Law: with speculation a step brings each sequence the whole tokens of mean * steps, so that fractions neither get
// lost nor pile up; what goes beyond an end is thrown away, and said to be.
TEST(Group, StepsMayBringSeveralTokens) {
  Group group{1, 2, Group::kUnlimited, Tokens{1}, {}, TokenPace{2.5}};
  group.bind(0, sequence(7, 10, 7));
  std::vector<std::int64_t> told;
  for (int i = 0; i < 3; ++i) {
    step(group);
    told.push_back(group.step_loads().loads[0].count());
  }
  EXPECT_THAT(told, ElementsAre(10, 12, 15));  // 2.5, 5, 7.5 tokens
  EXPECT_THAT(step(group).left, ElementsAre(7));
  EXPECT_EQ(group.thrown_away(), Tokens{0});
  group.bind(0, sequence(8, 10, 1));
  step(group);
  EXPECT_EQ(group.step_loads().growth, Tokens{2});  // 12.5 after 10
  EXPECT_THAT(step(group).left, ElementsAre(8));
  EXPECT_EQ(group.thrown_away(), Tokens{1});
  EXPECT_EQ(group.load(0), Tokens{0});
}

// Law: steps bring the mean in the long run, to a millionth, and any of them one of its two neighbours.
TEST(TokenPace, KeepsToItsMean) {
  for (const double mean : {1.0, 1.1, 1.7, 2.0, 3.99, TokenPace::kMost}) {
    const TokenPace pace{mean};
    constexpr std::int64_t kSteps = 100'000;
    Tokens sum{0};
    for (Steps step{0}; step < Steps{kSteps}; step += Steps{1}) {
      const Tokens grown = pace.after(step);
      EXPECT_LT(std::abs(static_cast<double>(grown.count()) - mean), 1);
      EXPECT_LE(grown, pace.most());
      sum += grown;
    }
    EXPECT_NEAR(static_cast<double>(sum.count()) / kSteps, mean, 2e-5);
    EXPECT_EQ(pace.most(), Tokens{static_cast<std::int64_t>(std::ceil(mean))});
  }
}

// Law: a sequence bound at an age reads prompt + age at once and only generates the rest.
TEST(Group, SequenceCanBeginInTheMiddle) {
  Group group{1, 1};
  group.bind(0, sequence(7, 10, 5, 3));
  step(group);
  EXPECT_THAT(loads(group), ElementsAre(13));
  step(group);
  EXPECT_THAT(loads(group), ElementsAre(14));
  EXPECT_THAT(step(group).left, ElementsAre(7));
}

// Law: the envelope is the largest load; an idle worker counts as zero.
TEST(Group, EnvelopeIsTheLargestLoad) {
  Group group{3, 4};
  group.bind(0, sequence(1, 100, 9));
  group.bind(2, sequence(2, 40, 9));
  group.bind(2, sequence(3, 70, 9));
  group.enter();
  EXPECT_THAT(loads(group), ElementsAre(100, 0, 110));
  EXPECT_EQ(group.step_loads().envelope, Tokens{110});
  EXPECT_EQ(group.step_loads().active, 3);
}

// Law: leaving comes before entering, so a slot that is freed by a step is used by the next one.
TEST(Group, FreedSlotIsUsedInTheSameStep) {
  Group group{1, 1};
  group.bind(0, sequence(1, 10, 1));
  group.bind(0, sequence(2, 20, 1));
  EXPECT_THAT(step(group).entered, ElementsAre(1));
  EXPECT_EQ(group.queued(0), 1);
  const auto second = step(group);
  EXPECT_THAT(second.left, ElementsAre(1));
  EXPECT_THAT(second.entered, ElementsAre(2));
  EXPECT_THAT(loads(group), ElementsAre(20));
}

// Law: a worker's FIFO is kept, and no worker takes another's sequences.
TEST(Group, EachWorkerServesItsOwnQueueInOrder) {
  Group group{2, 2};
  for (std::uint64_t id = 0; id < 5; ++id) group.bind(0, sequence(id, 1, 2));
  EXPECT_THAT(step(group).entered, ElementsAre(0, 1));
  EXPECT_THAT(step(group).entered, IsEmpty());
  EXPECT_THAT(step(group).entered, ElementsAre(2, 3));
  EXPECT_EQ(group.active(1), 0);
  EXPECT_EQ(group.queued(0), 1);
}

// Law: a sequence bound while a step runs joins the next one.
TEST(Group, BindingDuringAStepWaitsForTheNext) {
  Group group{1, 2};
  group.bind(0, sequence(1, 10, 5));
  group.enter();
  group.bind(0, sequence(2, 20, 5));
  EXPECT_THAT(loads(group), ElementsAre(10));
  group.advance();
  EXPECT_THAT(step(group).entered, ElementsAre(2));
  EXPECT_THAT(loads(group), ElementsAre(31));
}

// Law: after advance() every running sequence has one token more, and the finished ones say so until leave().
TEST(Group, RunningSequencesTellTheirTokens) {
  Group group{1, 3};
  const auto first = group.bind(0, sequence(1, 10, 2));
  group.bind(0, sequence(2, 20, 9, 4));
  step(group);
  group.leave();
  group.enter();
  group.advance();
  std::vector<RunningSequence> running;
  group.for_each_running(0, [&running](const RunningSequence& each) { running.push_back(each); });
  ASSERT_EQ(running.size(), 2U);
  EXPECT_EQ(running[0].handle, first);
  EXPECT_EQ(running[0].generated, Tokens{2});
  EXPECT_TRUE(running[0].finished());
  EXPECT_EQ(running[1].generated, Tokens{6});
  EXPECT_FALSE(running[1].finished());
}

// Law: aborting gives back exactly what the sequence held, in every state, and only once.
TEST(Group, AbortGivesBackInEveryState) {
  Group group{1, 2};
  const auto running = group.bind(0, sequence(1, 10, 9));
  const auto finished = group.bind(0, sequence(2, 20, 2));
  const auto queued = group.bind(0, sequence(3, 30, 9));
  step(group);
  step(group);
  EXPECT_EQ(group.load(0), Tokens{10 + 2 + 20 + 2});
  EXPECT_TRUE(group.abort(queued));
  EXPECT_EQ(group.queued(), 0);
  EXPECT_TRUE(group.abort(running));
  EXPECT_EQ(group.load(0), Tokens{22});
  EXPECT_TRUE(group.abort(finished));
  EXPECT_EQ(group.load(0), Tokens{0});
  EXPECT_EQ(group.active(), 0);
  EXPECT_FALSE(group.abort(running));
  EXPECT_FALSE(group.abort(SequenceHandle{}));
  EXPECT_THAT(step(group).left, IsEmpty());
}

// Law: a handle never speaks for the sequence that took its place.
TEST(Group, StaleHandleDoesNotReachASuccessor) {
  Group group{1, 1};
  const auto old = group.bind(0, sequence(1, 10, 1));
  step(group);
  group.leave();
  const auto successor = group.bind(0, sequence(2, 10, 1));
  EXPECT_EQ(successor.index(), old.index());
  EXPECT_FALSE(group.abort(old));
  EXPECT_TRUE(group.abort(successor));
}

// Law: an abort within a step frees the slot for the next one; the told loads of the running step stay.
TEST(Group, AbortWithinAStepLeavesItsLoadsAlone) {
  Group group{1, 1};
  const auto first = group.bind(0, sequence(1, 10, 9));
  group.bind(0, sequence(2, 20, 9));
  group.enter();
  group.abort(first);
  EXPECT_THAT(loads(group), ElementsAre(10));
  group.advance();
  EXPECT_THAT(step(group).entered, ElementsAre(2));
  EXPECT_THAT(loads(group), ElementsAre(20));
}

// Law: an end further away than the calendar's ring is long is found in its own step.
TEST(Group, LongSequencesEndInTheirStep) {
  Group group{1, 3};
  group.bind(0, sequence(1, 1, 1024));
  group.bind(0, sequence(2, 1, 1025));
  group.bind(0, sequence(3, 1, 2048));
  std::vector<std::pair<std::int64_t, std::uint64_t>> ends;
  while (group.active() + group.queued() > 0) {
    const auto now = group.step().count();
    for (const auto id : step(group).left) ends.emplace_back(now, id);
  }
  EXPECT_THAT(ends, ElementsAre(std::pair{1024, 1}, std::pair{1025, 2}, std::pair{2048, 3}));
}

TEST(Group, NoWorkersIsAnEmptyGroup) {
  Group group{0, 1};
  EXPECT_THAT(step(group).entered, IsEmpty());
  EXPECT_EQ(group.step_loads().envelope, Tokens{0});
}

// Law: a sequence enters only where its tokens, and those of the coming step, fit beside what runs; nobody overtakes
// it.
TEST(Group, EntersOnlyWhereKvSpaceIs) {
  Group group{1, 4, Tokens{100}};
  group.bind(0, sequence(1, 60, 5));
  group.bind(0, sequence(2, 39, 5));  // 60 + 1 + 39 + 1 = 101
  group.bind(0, sequence(3, 10, 5));
  EXPECT_THAT(step(group).entered, ElementsAre(1));
  EXPECT_EQ(group.queued(0), 2);
}

TEST(Group, EntersWhereTheSpaceIsJustEnough) {
  Group group{1, 4, Tokens{100}};
  group.bind(0, sequence(1, 60, 5));
  group.bind(0, sequence(2, 38, 5));
  EXPECT_THAT(step(group).entered, ElementsAre(1, 2));
}

// Law: when running sequences outgrow the KV space the youngest goes back to the front of the FIFO, keeps what it
// generated, and goes on from there when it fits.
TEST(Group, PreemptsTheYoungestWhenKvSpaceRunsOut) {
  Group group{1, 4, Tokens{100}};
  const auto older = group.bind(0, sequence(1, 60, 3));
  const auto younger = group.bind(0, sequence(2, 37, 6));
  group.bind(0, sequence(3, 1, 1));
  step(group);  // 60 + 37, then 61 + 38
  EXPECT_THAT(loads(group), ElementsAre(97));
  step(group);  // no space for 62 + 39
  EXPECT_THAT(loads(group), ElementsAre(61));
  EXPECT_THAT(ids(group.preempted()), ElementsAre(2));
  EXPECT_EQ(group.generated(younger), Tokens{1});
  EXPECT_EQ(group.generated(older), Tokens{2});
  EXPECT_EQ(group.queued(0), 2);
  EXPECT_TRUE(group.recomputed().empty());
  step(group);
  EXPECT_THAT(group.preempted(), IsEmpty());
  const auto resumed = step(group);
  EXPECT_THAT(resumed.left, ElementsAre(1));
  EXPECT_THAT(resumed.entered, ElementsAre(2, 3));
  ASSERT_EQ(group.recomputed().size(), 1U);  // what it is made of again: 37 and one generated
  EXPECT_EQ(group.recomputed()[0].worker, 0U);
  EXPECT_EQ(group.recomputed()[0].tokens, Tokens{38});
  EXPECT_THAT(loads(group), ElementsAre(38 + 1));
  std::vector<std::uint64_t> left;
  for (int i = 0; i < 5; ++i) {
    for (const auto id : step(group).left) left.push_back(id);
  }
  EXPECT_THAT(left, ElementsAre(3, 2));  // it generated its six tokens and no more
}

// Law: one sequence alone always runs, so that nothing waits for ever.
TEST(Group, OneSequenceAloneRunsEvenBeyondTheKvSpace) {
  Group group{1, 2, Tokens{10}};
  group.bind(0, sequence(1, 50, 2));
  EXPECT_THAT(step(group).entered, ElementsAre(1));
  step(group);
  EXPECT_THAT(step(group).left, ElementsAre(1));
}

}  // namespace
}  // namespace balanceroute::engine
