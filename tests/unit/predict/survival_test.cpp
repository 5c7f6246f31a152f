#include "predict/survival.hpp"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace balanceroute {
namespace {

PredictorParams quick_params() {
  PredictorParams params;
  params.min_requests = 4;
  params.half_life_requests = 100;
  return params;
}

class SurvivalPredictorTest : public ::testing::Test {
 protected:
  void finish(std::int64_t length) { predictor_.ended(Request{}, Tokens{length}, LeaseEnd::finished); }
  void finish_all(const std::vector<std::int64_t>& lengths) {
    for (const std::int64_t length : lengths) finish(length);
  }
  [[nodiscard]] Prediction predict(std::int64_t age, std::int64_t horizon) const {
    return predictor_.predict(Request{}, Tokens{age}, Steps{horizon});
  }

  SurvivalPredictor predictor_{quick_params()};
};

// Law: without information, and before enough of it, a request outlives the horizon.
TEST_F(SurvivalPredictorTest, NoInformationMeansThatItStays) {
  finish_all({5, 5, 5});
  predictor_.renew({});
  EXPECT_EQ(predict(0, 80).finish_chance, 0);
  EXPECT_EQ(predict(0, 80).remaining(Steps{80}), 80);
  std::array<std::uint32_t, 4> chances{};
  predictor_.survival(Request{}, Tokens{0}, chances);
  EXPECT_EQ(chances, (std::array<std::uint32_t, 4>{kCertain, kCertain, kCertain, kCertain}));
}

// Law: p_fin is the share of those older than the request that end within the horizon, mu_rem their mean remaining.
TEST_F(SurvivalPredictorTest, CountsThoseThatWereOlder) {
  finish_all({2, 4, 6, 20});
  predictor_.renew({});
  const Prediction young = predict(0, 5);
  EXPECT_DOUBLE_EQ(young.finish_chance, 0.5);
  EXPECT_DOUBLE_EQ(young.mean_remaining, 3);
  EXPECT_DOUBLE_EQ(young.remaining(Steps{5}), 4);
  const Prediction older = predict(3, 5);
  EXPECT_DOUBLE_EQ(older.finish_chance, 2.0 / 3);
  EXPECT_DOUBLE_EQ(older.mean_remaining, 2);
  std::array<std::uint32_t, 4> chances{};
  predictor_.survival(Request{}, Tokens{3}, chances);
  EXPECT_EQ(chances,
            (std::array<std::uint32_t, 4>{kCertain, fixed_point(2.0 / 3), fixed_point(2.0 / 3), fixed_point(1.0 / 3)}));
}

// Law: older than all that ended, it outlives the horizon.
TEST_F(SurvivalPredictorTest, BeyondAllDataItStays) {
  finish_all({2, 4, 6, 20});
  predictor_.renew({});
  EXPECT_EQ(predict(20, 5).remaining(Steps{5}), 5);
  EXPECT_EQ(predict(1'000'000'000, 5).remaining(Steps{5}), 5);
}

// Law: answers change in renew() only, and one is wanted once enough is over.
TEST_F(SurvivalPredictorTest, AnswersChangeWhenRenewed) {
  EXPECT_FALSE(predictor_.wants_renewal());
  finish_all({2, 2, 2, 2});
  EXPECT_TRUE(predictor_.wants_renewal());
  EXPECT_EQ(predict(0, 5).finish_chance, 0);
  predictor_.renew({});
  EXPECT_EQ(predict(0, 5).finish_chance, 1);
  EXPECT_FALSE(predictor_.wants_renewal());
  for (int i = 0; i < 99; ++i) finish(9);
  EXPECT_FALSE(predictor_.wants_renewal());
  EXPECT_EQ(predict(0, 5).finish_chance, 1);
  finish(9);
  EXPECT_TRUE(predictor_.wants_renewal());
}

// Law: running ones count as longer than they are: four of eight are known to have more than 10 tokens.
TEST_F(SurvivalPredictorTest, RunningOnesAreCensored) {
  finish_all({4, 4, 4, 4});
  const std::vector<LifeSpan> running(4, LifeSpan{.first_seen = Tokens{0}, .last_seen = Tokens{10}});
  predictor_.renew(running);
  EXPECT_DOUBLE_EQ(predict(0, 8).finish_chance, 0.5);
}

// Law: what was cut, or met its limit, is known to be longer and is no end.
TEST_F(SurvivalPredictorTest, CutOnesAndLimitedOnesAreCensored) {
  finish_all({2, 2, 6, 6});
  predictor_.ended(Request{}, Tokens{4}, LeaseEnd::cut);
  predictor_.ended(Request{.output_limit = Tokens{5}}, Tokens{5}, LeaseEnd::finished);
  predictor_.renew({});
  EXPECT_DOUBLE_EQ(predict(0, 5).finish_chance, 2.0 / 6);
  EXPECT_DOUBLE_EQ(predict(0, 6).finish_chance, 1);  // of the two still in sight there
  // Met at 2, the limit says that there was more than 1 token, and nothing of an end at 2.
  for (int i = 0; i < 96; ++i) predictor_.ended(Request{.output_limit = Tokens{2}}, Tokens{2}, LeaseEnd::finished);
  predictor_.renew({});
  EXPECT_DOUBLE_EQ(predict(0, 2).finish_chance, 2.0 / 6);
}

// Law: after half_life_requests more the old ones weigh half: 100 of length 4 count as 50 beside 25 new ones.
TEST_F(SurvivalPredictorTest, OldHistoryFades) {
  for (int i = 0; i < 100; ++i) finish(4);
  for (int i = 0; i < 25; ++i) finish(9);
  predictor_.renew({});
  EXPECT_DOUBLE_EQ(predict(0, 4).finish_chance, 50.0 / 75);
  for (int i = 0; i < 100 * 30; ++i) finish(9);
  predictor_.renew({});
  EXPECT_EQ(predict(0, 4).finish_chance, 0);  // forgotten
}

// Law: renewals become rarer as more is known, until they are an eighth of the half life apart.
TEST(RenewalSchedule, FollowsWhatIsOver) {
  RenewalSchedule schedule{5, 8'000};
  const auto until_due = [&schedule] {
    int count = 0;
    for (; !schedule.due(); ++count) schedule.count();
    schedule.renewed();
    return count;
  };
  EXPECT_EQ(until_due(), 5);
  EXPECT_EQ(until_due(), 100);
  while (until_due() == 100) {
  }
  EXPECT_GT(until_due(), 100);
  int last = 0;
  for (int i = 0; i < 100; ++i) last = until_due();
  EXPECT_EQ(last, 1'000);
}

}  // namespace
}  // namespace balanceroute
