#include "predict/exact_match.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "predict/survival.hpp"

namespace balanceroute {
namespace {

PredictorParams quick_params() {
  PredictorParams params;
  params.min_requests = 4;
  params.key_min_requests = 2;
  params.max_keys = 3;
  return params;
}

class ExactMatchTest : public ::testing::Test {
 protected:
  static Request keyed(std::uint64_t key) { return {.prompt_key = key}; }
  void finish(std::uint64_t key, std::int64_t length) {
    predictor_.ended(keyed(key), Tokens{length}, LeaseEnd::finished);
  }
  [[nodiscard]] Prediction predict(std::uint64_t key, std::int64_t age, std::int64_t horizon) const {
    return predictor_.predict(keyed(key), Tokens{age}, Steps{horizon});
  }

  ExactMatch predictor_{quick_params(), std::make_unique<SurvivalPredictor>(quick_params())};
};

// Law: with enough answers to its prompt a request is predicted from those alone.
TEST_F(ExactMatchTest, UsesTheAnswersToItsPrompt) {
  for (const std::int64_t length : {10, 10, 30}) finish(7, length);
  for (int i = 0; i < 20; ++i) finish(8, 100);
  predictor_.renew({});
  EXPECT_DOUBLE_EQ(predict(7, 0, 20).finish_chance, 2.0 / 3);
  EXPECT_DOUBLE_EQ(predict(7, 0, 20).mean_remaining, 10);
  EXPECT_DOUBLE_EQ(predict(7, 10, 20).finish_chance, 1);
  EXPECT_DOUBLE_EQ(predict(7, 10, 20).mean_remaining, 20);
  std::array<std::uint32_t, 3> chances{};
  predictor_.survival(keyed(7), Tokens{9}, chances);
  EXPECT_EQ(chances, (std::array<std::uint32_t, 3>{kCertain, fixed_point(1.0 / 3), fixed_point(1.0 / 3)}));
}

// Law: too few answers, none that was longer, no key, a key never seen: as all answers are.
TEST_F(ExactMatchTest, FallsBackToAllAnswers) {
  finish(7, 10);
  for (int i = 0; i < 3; ++i) finish(8, 4);
  finish(0, 4);
  finish(0, 4);
  predictor_.renew({});
  const double all = 5.0 / 6;  // are over within 5 tokens
  EXPECT_DOUBLE_EQ(predict(7, 0, 5).finish_chance, all);
  EXPECT_DOUBLE_EQ(predict(0, 0, 5).finish_chance, all);
  EXPECT_DOUBLE_EQ(predict(99, 0, 5).finish_chance, all);
  EXPECT_DOUBLE_EQ(predict(8, 0, 5).finish_chance, 1);
  EXPECT_DOUBLE_EQ(predict(8, 4, 6).finish_chance, 1);  // the one of length 10
  EXPECT_DOUBLE_EQ(predict(8, 4, 5).finish_chance, 0);
}

// Law: a prompt whose answers meet their limits goes on, as far as anyone knows; a cut one tells nothing.
TEST_F(ExactMatchTest, LimitedAnswersAreLongerThanAnyHorizon) {
  const Request limited{.output_limit = Tokens{10}, .prompt_key = 7};
  for (int i = 0; i < 2; ++i) predictor_.ended(limited, Tokens{10}, LeaseEnd::finished);
  for (int i = 0; i < 4; ++i) finish(8, 3);
  for (int i = 0; i < 4; ++i) predictor_.ended(keyed(9), Tokens{50}, LeaseEnd::cut);
  predictor_.renew({});
  EXPECT_EQ(predict(7, 0, 5).finish_chance, 0);
  EXPECT_EQ(predict(7, 0, 5'000).finish_chance, 0);
  EXPECT_DOUBLE_EQ(predict(9, 0, 5).finish_chance, 0.4);  // as all ten
}

// Law: answers change in renew() only.
TEST_F(ExactMatchTest, AnswersChangeWhenRenewed) {
  finish(7, 10);
  finish(7, 10);
  EXPECT_TRUE(predictor_.wants_renewal());
  EXPECT_EQ(predict(7, 0, 20).finish_chance, 0);
  predictor_.renew({});
  EXPECT_EQ(predict(7, 0, 20).finish_chance, 1);
}

// Law: of max_keys prompts the one longest without an answer makes room for a new one.
TEST_F(ExactMatchTest, ForgetsThePromptLongestUnseen) {
  for (const std::uint64_t key : std::vector<std::uint64_t>{1, 2, 3, 1, 2, 3, 1, 4, 4}) finish(key, 10);
  for (int i = 0; i < 91; ++i) finish(0, 1'000);
  predictor_.renew({});
  EXPECT_EQ(predict(1, 0, 20).finish_chance, 1);
  EXPECT_EQ(predict(3, 0, 20).finish_chance, 1);
  EXPECT_EQ(predict(4, 0, 20).finish_chance, 1);
  EXPECT_LT(predict(2, 0, 20).finish_chance, 0.1);
}

// Law: a hit is a request that ended when enough answers to its prompt were known.
TEST_F(ExactMatchTest, CountsHits) {
  for (const std::uint64_t key : std::vector<std::uint64_t>{7, 7, 0}) finish(key, 10);
  EXPECT_EQ(predictor_.key_hits().hits, 0);
  predictor_.renew({});
  for (const std::uint64_t key : std::vector<std::uint64_t>{7, 8, 0, 7}) finish(key, 10);
  EXPECT_EQ(predictor_.key_hits().requests, 7);
  EXPECT_EQ(predictor_.key_hits().hits, 2);
}

// Law: of one key the last kKept lengths are kept.
TEST(LengthHistory, KeepsTheLastLengths) {
  LengthHistory history{2};
  EXPECT_TRUE(history.of(5).empty());
  for (std::size_t i = 0; i < LengthHistory::kKept + 3; ++i) history.add(5, Tokens{static_cast<std::int64_t>(i)});
  const auto kept = history.of(5);
  EXPECT_EQ(kept.size(), LengthHistory::kKept);
  EXPECT_EQ(std::ranges::min(kept), Tokens{3});
  EXPECT_EQ(std::ranges::max(kept), Tokens{LengthHistory::kKept + 2});
}

}  // namespace
}  // namespace balanceroute
