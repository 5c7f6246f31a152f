#include "calibrate/calibration.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>

#include "calibrate/calibration_report.hpp"

namespace balanceroute::calibrate {
namespace {

// What a step costs, of a group whose most loaded worker has 50,000 to 150,000 tokens and 40 to 72 sequences.
struct Costs {
  double per_token_ms = 1.00525e-4;
  double per_sequence_ms = 0;
  double fixed_ms = 9.775;
  double noise_ms = 0.1;
};

StepSamples measured(const Costs& costs, std::size_t steps = 2000) {
  std::mt19937_64 random{11};
  std::uniform_real_distribution<double> tokens{50'000, 150'000};
  std::uniform_real_distribution<double> sequences{40, 72};
  std::normal_distribution<double> noise{0, costs.noise_ms};
  StepSamples samples{.source = "test"};
  for (std::size_t i = 0; i < steps; ++i) {
    samples.max_tokens.push_back(tokens(random));
    samples.sequences.push_back(std::floor(sequences(random)));
    samples.total_tokens.push_back(7.5 * samples.max_tokens.back());
    samples.step_ms.push_back(costs.fixed_ms + costs.per_token_ms * samples.max_tokens.back() +
                              costs.per_sequence_ms * samples.sequences.back() + noise(random));
  }
  return samples;
}

// Law: where load makes steps long, the coefficients are found within two percent and the verdict says so, whatever
// pauses and stalls are among the steps.
TEST(Calibration, FindsWhatStepsCost) {
  StepSamples samples = measured({});
  for (std::size_t i = 0; i < samples.size(); i += 20) samples.step_ms[i] += 40;
  const Calibration found = calibrate(samples);
  EXPECT_EQ(found.verdict, Verdict::good);
  ASSERT_TRUE(found.per_token_ms);
  EXPECT_NEAR(found.per_token_ms->value, 1.00525e-4, 0.02 * 1.00525e-4);
  EXPECT_NEAR(found.fixed_ms.value, 9.775, 0.02 * 9.775);
  EXPECT_LE(found.per_token_ms->low, 1.00525e-4);
  EXPECT_GE(found.per_token_ms->high, 1.00525e-4);
  EXPECT_NEAR(found.load_share, 10.05 / 19.83, 0.02);
  EXPECT_EQ(found.far_off, 100u);
  EXPECT_LT(found.by_sequences.value(), 0.02);
}

// Law: where steps take their time whatever the load, it is no measure, and no settings are made of it.
TEST(Calibration, LoadThatCostsNothingIsNoMeasure) {
  const Calibration found = calibrate(measured({.per_token_ms = 0}));
  EXPECT_EQ(found.verdict, Verdict::poor);
  const std::string text = calibration_text(found);
  EXPECT_NE(text.find("not a good measure"), std::string::npos);
  EXPECT_EQ(text.find("--fixed-ms"), std::string::npos);
}

// Law: load that costs something is still a poor measure where other things decide.
TEST(Calibration, LoadBelowTheNoiseIsNoMeasure) {
  EXPECT_EQ(calibrate(measured({.noise_ms = 40})).verdict, Verdict::poor);
  EXPECT_EQ(calibrate(measured({.noise_ms = 3})).verdict, Verdict::fair);
}

// Law: a cost of each sequence is found beside that of tokens, and the load model that counts both is named.
TEST(Calibration, SequencesThatCostAreFound) {
  const Calibration found = calibrate(measured({.per_token_ms = 2e-5, .per_sequence_ms = 0.2}));
  EXPECT_EQ(found.verdict, Verdict::incomplete);
  ASSERT_TRUE(found.with_sequences);
  EXPECT_NEAR(found.with_sequences->per_token_ms.value, 2e-5, 4e-7);
  EXPECT_NEAR(found.with_sequences->per_sequence_ms.value, 0.2, 0.004);
  EXPECT_NE(calibration_text(found).find("load_model: {kind: fitted, per_token_ms: "), std::string::npos);
}

// Law: there is no verdict from too few steps or from load that stands still.
TEST(Calibration, NoVerdictWithoutEvidence) {
  EXPECT_EQ(calibrate(measured({}, kLeastSteps - 1)).verdict, Verdict::too_few);
  StepSamples still = measured({});
  for (double& tokens : still.max_tokens) tokens = 100'000 + 0.01 * (tokens - 100'000);
  EXPECT_EQ(calibrate(still).verdict, Verdict::no_spread);
  for (double& tokens : still.max_tokens) tokens = 0;
  EXPECT_EQ(calibrate(still).verdict, Verdict::no_spread);
}

// Law: the JSON says what the words say; without a fit it has no coefficients.
TEST(Calibration, JsonHasTheFigures) {
  const auto good = nlohmann::json::parse(calibration_json(calibrate(measured({}))));
  EXPECT_EQ(good["verdict"], "good");
  EXPECT_EQ(good["steps"], 2000);
  EXPECT_NEAR(good["fixed_ms"]["value"].get<double>(), 9.775, 0.1);
  const auto none = nlohmann::json::parse(calibration_json(calibrate(measured({}, 3))));
  EXPECT_EQ(none["verdict"], "too_few");
  EXPECT_FALSE(none.contains("fixed_ms"));
}

}  // namespace
}  // namespace balanceroute::calibrate
