#include "stats/step_time_fit.hpp"

#include <gtest/gtest.h>

#include <random>

namespace balanceroute {
namespace {

constexpr StepTime kEngine{.fixed_ms = 10, .per_token_ms = 1e-4};

TEST(StepTimeFit, SaysNothingBeforeItHasSeenEnough) {
  EXPECT_FALSE(StepTimeFit{}.line());
  StepTimeFit fit;
  for (int i = 0; i < 10; ++i) fit.record(Tokens{1000 * i}, kEngine.milliseconds(Tokens{1000 * i}));
  EXPECT_FALSE(fit.line());
}

// Law: exact pairs give the line itself.
TEST(StepTimeFit, FindsTheLineThatMadeThePairs) {
  StepTimeFit fit;
  for (int i = 0; i < 100; ++i) {
    const Tokens envelope{50'000 + 1000 * (i % 17)};
    fit.record(envelope, kEngine.milliseconds(envelope));
  }
  ASSERT_TRUE(fit.line());
  EXPECT_NEAR(fit.line()->fixed_ms, kEngine.fixed_ms, 1e-6);
  EXPECT_NEAR(fit.line()->per_token_ms, kEngine.per_token_ms, 1e-12);
}

// Law: envelopes that are all the same say nothing about the price of a token, however many they are.
TEST(StepTimeFit, IsSilentWhereLoadsDoNotDiffer) {
  StepTimeFit fit;
  for (int i = 0; i < 5000; ++i) fit.record(Tokens{50'000}, 15 + (i % 3));
  EXPECT_FALSE(fit.line());
}

// Law: times that do not depend on load have a line of no slope, and that is known.
TEST(StepTimeFit, KnowsThatLoadCostsNothing) {
  std::mt19937 draw{7};
  StepTimeFit fit;
  for (int i = 0; i < 3000; ++i) {
    fit.record(Tokens{20'000 + static_cast<std::int64_t>(draw() % 80'000)},
               20 + static_cast<double>(draw() % 100) / 50);
  }
  ASSERT_TRUE(fit.line());
  EXPECT_LT(fit.line()->per_token_ms * 60'000, 0.2);
}

// Law: what is known is known to the share that it promises, under noise as large as what load adds.
TEST(StepTimeFit, IsAsSureAsItSays) {
  std::mt19937 draw{11};
  StepTimeFit fit;
  for (int i = 0; i < 2000; ++i) {
    const Tokens envelope{60'000 + static_cast<std::int64_t>(draw() % 40'000)};
    fit.record(envelope, kEngine.milliseconds(envelope) + static_cast<double>(draw() % 8000) / 1000 - 4);
  }
  ASSERT_TRUE(fit.line());
  const double mean_ms = kEngine.milliseconds(Tokens{80'000});
  EXPECT_NEAR(fit.line()->per_token_ms * 80'000 / mean_ms, kEngine.per_token_ms * 80'000 / mean_ms,
              2 * StepTimeFit::kSureShare);
}

// Law: what engines did long ago is forgotten.
TEST(StepTimeFit, FollowsEnginesThatChange) {
  StepTimeFit fit;
  const auto run = [&fit](StepTime engine, int pairs) {
    for (int i = 0; i < pairs; ++i) {
      const Tokens envelope{50'000 + 1000 * (i % 17)};
      fit.record(envelope, engine.milliseconds(envelope));
    }
  };
  run(kEngine, 1000);
  run({.fixed_ms = 5, .per_token_ms = 3e-4}, 20 * static_cast<int>(StepTimeFit::kHalfLife));
  ASSERT_TRUE(fit.line());
  EXPECT_NEAR(fit.line()->per_token_ms, 3e-4, 1e-6);
}

}  // namespace
}  // namespace balanceroute
