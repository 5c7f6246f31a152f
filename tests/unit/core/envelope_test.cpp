#include "core/envelope.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute {
namespace {

std::vector<Tokens> loads_of(std::initializer_list<std::int64_t> counts) {
  std::vector<Tokens> loads;
  for (const std::int64_t count : counts) loads.emplace_back(count);
  return loads;
}

// Law: imbalance is G * envelope - total load.
TEST(Envelope, ImbalanceOfTheWorkedExamples) {
  EXPECT_EQ(imbalance(loads_of({10, 7, 6, 5})), Tokens{12});
  EXPECT_EQ(imbalance(loads_of({100, 90, 70, 60})), Tokens{80});
}

// Law: an admission inside the margin leaves the envelope alone and lowers imbalance by its own size.
TEST(Envelope, AdmissionInsideMarginLowersImbalanceByItsSize) {
  Envelope envelope{loads_of({10, 7, 6, 5})};
  envelope.raise(2, Tokens{4});  // its margin is exactly 4
  EXPECT_EQ(envelope.value(), Tokens{10});
  EXPECT_EQ(imbalance(envelope.loads()), Tokens{8});
}

// Law: one token above the margin raises the envelope for everyone.
TEST(Envelope, AdmissionAboveMarginRaisesEnvelope) {
  Envelope envelope{loads_of({10, 7, 6, 5})};
  envelope.raise(2, Tokens{5});
  EXPECT_EQ(envelope.value(), Tokens{11});
  EXPECT_EQ(imbalance(envelope.loads()), Tokens{11});
}

// Law: lowering the only maximum lets the envelope fall to the next one; lowering another leaves it.
TEST(Envelope, LowerFindsTheNextMaximum) {
  Envelope envelope{loads_of({10, 7, 6, 5})};
  envelope.lower(1, Tokens{7});
  EXPECT_EQ(envelope.value(), Tokens{10});
  envelope.lower(0, Tokens{6});
  EXPECT_EQ(envelope.value(), Tokens{6});
  EXPECT_EQ(envelope.margin(2), Tokens{0});
  EXPECT_EQ(envelope.margin(1), Tokens{6});
}

TEST(Envelope, OfTwoEqualMaximaOneMayFall) {
  Envelope envelope{loads_of({9, 9})};
  envelope.lower(0, Tokens{9});
  EXPECT_EQ(envelope.value(), Tokens{9});
}

// Law: no workers, no load; one worker has no margin, no imbalance and no spread.
TEST(Envelope, EdgesOfGroupSize) {
  const Envelope none;
  EXPECT_EQ(none.value(), Tokens{0});
  EXPECT_EQ(imbalance({}), Tokens{0});
  EXPECT_EQ(spread({}), Tokens{0});
  const auto alone = loads_of({5});
  EXPECT_EQ(Envelope{alone}.margin(0), Tokens{0});
  EXPECT_EQ(imbalance(alone), Tokens{0});
  EXPECT_EQ(spread(alone), Tokens{0});
}

// Law: spread is the envelope less the smallest load, whatever lies between.
TEST(Envelope, SpreadIsNotImbalance) {
  EXPECT_EQ(spread(loads_of({10, 7, 6, 5})), Tokens{5});
  EXPECT_EQ(spread(loads_of({10, 10, 10, 5})), Tokens{5});
}

// Law: what is assigned replaces what was there.
TEST(Envelope, AssignForgetsTheOldLoads) {
  Envelope envelope{loads_of({100, 1})};
  envelope.assign(loads_of({3, 2, 1}));
  EXPECT_EQ(envelope.workers(), 3U);
  EXPECT_EQ(envelope.value(), Tokens{3});
}

}  // namespace
}  // namespace balanceroute
