#include "policy/br_0/br_0.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

// Law: the score is the size, less G for each token above the margin.
TEST(Br0Score, WorkedExamplesOfEightWorkers) {
  EXPECT_EQ(br_0_score(Tokens{900}, Tokens{1000}, 8), Tokens{900});
  EXPECT_EQ(br_0_score(Tokens{1000}, Tokens{1000}, 8), Tokens{1000});
  EXPECT_EQ(br_0_score(Tokens{1100}, Tokens{1000}, 8), Tokens{300});
  EXPECT_EQ(br_0_score(Tokens{1200}, Tokens{1000}, 8), Tokens{-400});
}

// Law: a group of one waits for nobody, so every admission is worth nothing.
TEST(Br0Score, OneWorkerHasNothingToGain) {
  EXPECT_EQ(br_0_score(Tokens{500}, Tokens{0}, 1), Tokens{0});
}

}  // namespace
}  // namespace balanceroute
