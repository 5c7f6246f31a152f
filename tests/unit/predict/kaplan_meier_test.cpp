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
