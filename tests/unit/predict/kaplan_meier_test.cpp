#include "predict/kaplan_meier.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace balanceroute {
namespace {

SurvivalCurve curve_of(KaplanMeier& lengths, const std::vector<LifeSpan>& running = {}) {
  SurvivalCurve curve;
  lengths.fill(curve, running);
  return curve;
}

LifeSpan span(std::int64_t first, std::int64_t last) {
  return {Tokens{first}, Tokens{last}};
}

// Law: without data nothing is known to end.
TEST(KaplanMeier, NoDataMeansThatAllSurvive) {
  KaplanMeier lengths;
  lengths.cut(span(0, 50));
  const SurvivalCurve curve = curve_of(lengths, {span(0, 9)});
  EXPECT_TRUE(curve.empty());
  EXPECT_EQ(curve.at(Tokens{0}), 1);
  EXPECT_EQ(curve.at(Tokens{1'000'000}), 1);
  EXPECT_EQ(curve.conditional(Tokens{3}, Tokens{99}), 1);
}

// Law: of complete answers only, S(x) is the share that is longer, and its sum the mean length.
TEST(KaplanMeier, CompleteAnswersGiveTheirShares) {
  KaplanMeier lengths;
  for (const std::int64_t length : {2, 2, 4, 8}) lengths.ended(span(0, length));
  const SurvivalCurve curve = curve_of(lengths);
  EXPECT_EQ(curve.at(Tokens{1}), 1);
  EXPECT_EQ(curve.at(Tokens{2}), 0.5);
  EXPECT_EQ(curve.at(Tokens{4}), 0.25);
  EXPECT_EQ(curve.at(Tokens{7}), 0.25);
  EXPECT_EQ(curve.at(Tokens{8}), 0);
  EXPECT_EQ(curve.at(Tokens{800}), 0);
  EXPECT_EQ(curve.mean_tokens(), 4);
  EXPECT_EQ(curve.longest(), Tokens{8});
  EXPECT_EQ(curve.conditional(Tokens{2}, Tokens{2}), 0.5);
  EXPECT_EQ(curve.conditional(Tokens{8}, Tokens{2}), 1);  // nobody is known to be so old
}

// Law: one that runs counts as at risk up to its age and never as an end; beyond the longest end the curve stays.
TEST(KaplanMeier, RunningOnesAreCensored) {
  KaplanMeier lengths;
  lengths.ended(span(0, 2));
  lengths.ended(span(0, 4));
  const SurvivalCurve curve = curve_of(lengths, {span(0, 3), span(0, 9)});
  EXPECT_EQ(curve.at(Tokens{2}), 0.75);
  EXPECT_EQ(curve.at(Tokens{4}), 0.375);  // two at risk of ending with the fourth token
  EXPECT_EQ(curve.at(Tokens{9}), 0.375);
  EXPECT_EQ(curve_of(lengths).at(Tokens{2}), 0.5);  // those that ran are not remembered
}

// Law: one first seen at age 5 says nothing about ends up to there.
TEST(KaplanMeier, OneSeenLateIsAtRiskOnlyFromThen) {
  KaplanMeier lengths;
  lengths.ended(span(0, 3));
  lengths.ended(span(0, 7));
  lengths.ended(span(5, 8));
  const SurvivalCurve curve = curve_of(lengths);
  EXPECT_EQ(curve.at(Tokens{3}), 0.5);
  EXPECT_EQ(curve.at(Tokens{7}), 0.25);
  EXPECT_EQ(curve.at(Tokens{8}), 0);
}

// Law: what was counted before weighs half, and nothing once it was halved too often.
TEST(KaplanMeier, OldCountsFade) {
  KaplanMeier lengths;
  for (const std::int64_t length : {4, 4, 8}) lengths.ended(span(0, length));
  lengths.halve();
  lengths.ended(span(0, 2));
  EXPECT_EQ(curve_of(lengths).at(Tokens{2}), 0.6);  // 1 of 2.5
  EXPECT_EQ(curve_of(lengths).longest(), Tokens{8});
  for (int i = 0; i < 20; ++i) lengths.halve();
  EXPECT_EQ(curve_of(lengths).longest(), Tokens{4});
  lengths.halve();
  EXPECT_TRUE(curve_of(lengths).empty());
  EXPECT_EQ(lengths.ends(), 4U);
}

// Law: counts that fade are rounded, chances stay chances.
TEST(KaplanMeier, FadedLateEntriesNeverOutweighTheRest) {
  KaplanMeier lengths;
  for (const std::int64_t length : {7, 8, 9}) lengths.ended(span(5, length));
  for (int i = 0; i < 2; ++i) lengths.ended(span(0, 3));
  for (int i = 0; i < 21; ++i) lengths.halve();
  EXPECT_EQ(curve_of(lengths).at(Tokens{2}), 1);
  EXPECT_EQ(curve_of(lengths).at(Tokens{3}), 0);
}

// Law: the mean within a horizon is the sum of the chances to run on, at every age, beyond the longest too.
TEST(KaplanMeier, MeanWithinAHorizon) {
  KaplanMeier lengths;
  for (const std::int64_t length : {2, 4}) lengths.ended(span(0, length));
  lengths.cut(span(0, 9));
  lengths.cut(span(0, 9));
  const SurvivalCurve curve = curve_of(lengths);
  EXPECT_EQ(curve.mean_within(Tokens{0}, Tokens{3}), 2.75);
  EXPECT_EQ(curve.mean_within(Tokens{2}, Tokens{3}), (0.75 + 0.75 + 0.5) / 0.75);
  EXPECT_EQ(curve.mean_within(Tokens{3}, Tokens{10}), (0.75 + 9 * 0.5) / 0.75);
  EXPECT_EQ(curve.mean_within(Tokens{50}, Tokens{10}), 10);
  EXPECT_EQ(SurvivalCurve{}.mean_within(Tokens{50}, Tokens{10}), 10);
}

// Law: a length beyond all bounds costs no memory beyond them and is no end.
TEST(KaplanMeier, LengthsAreBounded) {
  KaplanMeier lengths;
  lengths.ended(span(0, 1));
  lengths.ended(span(0, std::int64_t{1} << 40));
  lengths.ended(span(0, 0));  // nothing was generated: nothing was at risk
  EXPECT_EQ(lengths.ends(), 1U);
  EXPECT_EQ(curve_of(lengths).at(KaplanMeier::kLongest), 0.5);
}

}  // namespace
}  // namespace balanceroute
