#include "predict/calibration.hpp"

#include <gtest/gtest.h>

namespace balanceroute {
namespace {

// Law: the score is the mean squared error of chances, and the reference what the base rate alone would score.
TEST(Calibration, ScoresChancesAgainstOutcomes) {
  Calibration calibration;
  EXPECT_EQ(calibration.count(), 0);
  EXPECT_EQ(calibration.brier_score(), 0);
  calibration.record(1, true);
  calibration.record(0.5, true);
  calibration.record(0.25, false);
  calibration.record(0.25, false);
  EXPECT_EQ(calibration.count(), 4);
  EXPECT_DOUBLE_EQ(calibration.mean_predicted(), 0.5);
  EXPECT_DOUBLE_EQ(calibration.mean_happened(), 0.5);
  EXPECT_DOUBLE_EQ(calibration.brier_score(), (0 + 0.25 + 0.0625 + 0.0625) / 4);
  EXPECT_DOUBLE_EQ(calibration.brier_reference(), 0.25);
}

// Law: an outcome is in the bin of its chance, the last one closed at 1.
TEST(Calibration, SortsOutcomesByTheirChance) {
  Calibration calibration;
  calibration.record(0, false);
  calibration.record(0.0999, true);
  calibration.record(0.5, true);
  calibration.record(1, true);
  EXPECT_EQ(calibration.bins()[0].count, 2);
  EXPECT_EQ(calibration.bins()[0].happened, 1);
  EXPECT_DOUBLE_EQ(calibration.bins()[0].predicted, 0.0999);
  EXPECT_EQ(calibration.bins()[5].count, 1);
  EXPECT_EQ(calibration.bins()[9].count, 1);
}

// Law: a sum of two is as if one had seen all.
TEST(Calibration, Adds) {
  Calibration one;
  Calibration two;
  one.record(0.5, true);
  two.record(0.25, false);
  one += two;
  EXPECT_EQ(one.count(), 2);
  EXPECT_DOUBLE_EQ(one.mean_predicted(), 0.375);
  EXPECT_DOUBLE_EQ(one.mean_happened(), 0.5);
  EXPECT_DOUBLE_EQ(one.brier_score(), (0.25 + 0.0625) / 2);
}

class PredictionCheckTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::int64_t outcomes() const { return check_.calibration().count(); }
  [[nodiscard]] double happened() const { return check_.calibration().mean_happened(); }

  PredictionCheck check_{Steps{10}};
  OpenPrediction its_;
};

// Law: a finish within the horizon is one, to the very last step.
TEST_F(PredictionCheckTest, AFinishWithinTheHorizonHappened) {
  check_.predicted(its_, Tokens{5}, 0.7);
  check_.ended(its_, Tokens{15}, LeaseEnd::finished);
  EXPECT_EQ(outcomes(), 1);
  EXPECT_EQ(happened(), 1);
  EXPECT_DOUBLE_EQ(check_.calibration().mean_predicted(), 0.7);
}

// Law: one that has run past the horizon did not finish within it, and its next prediction is followed.
TEST_F(PredictionCheckTest, OneThatRunsOnDidNotHappen) {
  check_.predicted(its_, Tokens{5}, 0.7);
  check_.predicted(its_, Tokens{15}, 0.1);  // it may yet end at 15, and is not replaced
  EXPECT_EQ(outcomes(), 0);
  check_.predicted(its_, Tokens{16}, 0.2);
  EXPECT_EQ(outcomes(), 1);
  EXPECT_EQ(happened(), 0);
  EXPECT_DOUBLE_EQ(check_.calibration().mean_predicted(), 0.7);
  check_.ended(its_, Tokens{17}, LeaseEnd::finished);
  EXPECT_EQ(outcomes(), 2);
  EXPECT_DOUBLE_EQ(check_.calibration().mean_predicted(), 0.45);
  EXPECT_EQ(happened(), 0.5);
}

// Law: an end past the horizon, seen late, did not happen within it, however it came.
TEST_F(PredictionCheckTest, AnEndPastTheHorizonIsNone) {
  check_.predicted(its_, Tokens{5}, 0.7);
  check_.ended(its_, Tokens{16}, LeaseEnd::finished);
  check_.predicted(its_, Tokens{5}, 0.7);
  check_.ended(its_, Tokens{15}, LeaseEnd::cut);
  EXPECT_EQ(outcomes(), 2);
  EXPECT_EQ(happened(), 0);
}

// Law: cut before its outcome is known, a prediction tells nothing; nor does an end without a prediction.
TEST_F(PredictionCheckTest, ACutRequestTellsNothing) {
  check_.predicted(its_, Tokens{5}, 0.7);
  check_.ended(its_, Tokens{14}, LeaseEnd::cut);
  check_.ended(its_, Tokens{30}, LeaseEnd::finished);
  EXPECT_EQ(outcomes(), 0);
  check_.predicted(its_, Tokens{0}, 0.3);  // the place is free for another request
  check_.ended(its_, Tokens{1}, LeaseEnd::finished);
  EXPECT_EQ(outcomes(), 1);
}

// Law: what came after a moment is judged as if nothing had come before.
TEST(CalibrationWindow, IsWhatCameSince) {
  Calibration all;
  all.record(0.9, false);
  all.record(0.3, true);
  const Calibration before = all;
  EXPECT_EQ(all.since(before).count(), 0);
  Calibration later;
  for (Calibration* its : {&all, &later}) {
    its->record(0.25, false);
    its->record(0.75, true);
  }
  EXPECT_EQ(all.since(before).count(), 2);
  EXPECT_DOUBLE_EQ(all.since(before).brier_score(), later.brier_score());
  EXPECT_DOUBLE_EQ(all.since(before).brier_reference(), 0.25);
  EXPECT_DOUBLE_EQ(all.since(before).mean_predicted(), 0.5);
}

}  // namespace
}  // namespace balanceroute
