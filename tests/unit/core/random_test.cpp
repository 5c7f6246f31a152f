#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

namespace balanceroute {
namespace {

// Law: one seed gives one sequence, on every platform: that of splitmix64 and xoshiro256** as published, which a
// program in another language computed for seed 1.
TEST(Random, SequenceOfASeedIsFixed) {
  Random random{1};
  std::vector<std::uint64_t> words(1000);
  std::ranges::generate(words, [&random] { return random.bits(); });
  EXPECT_EQ(words[0], 0xb3f2af6d0fc710c5ULL);
  EXPECT_EQ(words[1], 0x853b559647364ceaULL);
  EXPECT_EQ(words[999], 0xb8517c33c344d153ULL);
}

TEST(Random, SeedsNextToEachOtherDiffer) {
  Random one{1};
  Random two{2};
  EXPECT_NE(one.bits(), two.bits());
}

// Law: below(n) stays below n and hits every value equally often (chi-square, 6 degrees of freedom, 99.9 % is 22.5).
TEST(Random, BoundedNumbersAreUniform) {
  Random random{7};
  std::array<int, 7> hits{};
  constexpr int kDraws = 70'000;
  for (int i = 0; i < kDraws; ++i) ++hits.at(random.below(hits.size()));
  double chi_square = 0;
  for (const int count : hits) chi_square += std::pow(count - kDraws / 7.0, 2) / (kDraws / 7.0);
  EXPECT_LT(chi_square, 22.5);
}

TEST(Random, BoundsAtTheEdges) {
  Random random{3};
  for (int i = 0; i < 100; ++i) EXPECT_EQ(random.below(1), 0U);
  constexpr std::uint64_t kHuge = (std::uint64_t{1} << 63) + 1;  // half of all words are rejected
  for (int i = 0; i < 100; ++i) EXPECT_LT(random.below(kHuge), kHuge);
}

// Law: no value is favoured where the bound does not divide 2^64: scaling words to 3/4 of their range without rejection
// would give multiples of three half of all draws.
TEST(Random, LargeBoundsAreUniform) {
  Random random{5};
  constexpr int kDraws = 30'000;
  int multiples = 0;
  for (int i = 0; i < kDraws; ++i) multiples += random.below(std::uint64_t{3} << 62) % 3 == 0 ? 1 : 0;
  EXPECT_NEAR(multiples, kDraws / 3.0, 410);  // five standard deviations
}

// Law: fractions lie in [0, 1) with mean 1/2; waiting times are positive with the mean asked for.
TEST(Random, FractionsAndWaitingTimesHaveTheirMeans) {
  Random random{11};
  constexpr int kDraws = 100'000;
  double fractions = 0;
  double waits = 0;
  for (int i = 0; i < kDraws; ++i) {
    const double fraction = random.uniform();
    ASSERT_GE(fraction, 0);
    ASSERT_LT(fraction, 1);
    fractions += fraction;
    const double wait = random.exponential(250);
    ASSERT_GE(wait, 0);
    waits += wait;
  }
  EXPECT_NEAR(fractions / kDraws, 0.5, 0.005);  // five standard errors
  EXPECT_NEAR(waits / kDraws, 250, 4);
}

}  // namespace
}  // namespace balanceroute
