#include "sim/prediction_study.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "core/random.hpp"
#include "history/store.hpp"
#include "support/finished_requests.hpp"
#include "support/temporary_folder.hpp"

namespace balanceroute::sim {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

// Answers that come one each 100 ms and take 10 ms a token. Their prompt says how long they are: 40 tokens for the even
// ones, 10 to 409 for each of the others.
std::vector<PastAnswer> answers_of_two_kinds(std::int64_t count) {
  Random random{3};
  std::vector<PastAnswer> answers;
  for (std::int64_t i = 0; i < count; ++i) {
    const bool even = i % 2 == 0;
    const Tokens output{even ? 40 : 10 + static_cast<std::int64_t>(random.below(400))};
    const milliseconds start{100 * i};
    answers.push_back({.start = start,
                       .end = start + milliseconds{10 * output.count()},
                       .prompt = Tokens{50},
                       .output = output,
                       .prompt_key = even ? 7U : 1'000U + static_cast<std::uint64_t>(i)});
  }
  return answers;
}

const PredictorResult& named(const std::vector<PredictorResult>& results, std::string_view name, bool capped) {
  return *std::ranges::find_if(results, [&](const auto& one) { return one.name == name && one.capped == capped; });
}

// Law: what is known of prompts helps where prompts repeat, and is told as the share of prompts that were known.
TEST(Foretell, ExactMatchWinsWherePromptsRepeat) {
  const auto results = foretell(answers_of_two_kinds(4'000), {});
  const auto& survival = named(results, "survival", false);
  const auto& match = named(results, "exact_match", false);
  EXPECT_GT(survival.calibration.count(), 3'000);
  EXPECT_LT(survival.calibration.brier_score(), survival.calibration.brier_reference());
  EXPECT_LT(match.calibration.brier_score(), 0.85 * survival.calibration.brier_score());
  EXPECT_LT(match.mean_error_tokens, 0.85 * survival.mean_error_tokens);
  EXPECT_NEAR(static_cast<double>(match.key_hits.hits) / static_cast<double>(match.key_hits.requests), 0.5, 0.05);
  EXPECT_EQ(survival.key_hits.requests, 0);
  EXPECT_NEAR(survival.calibration.mean_predicted(), survival.calibration.mean_happened(), 0.03);
}

// Law: limits help only those that know them, and only where answers meet them.
TEST(Foretell, LimitsHelpThoseThatKnowThem) {
  auto answers = answers_of_two_kinds(4'000);
  const auto without = foretell(answers, {});
  EXPECT_EQ(named(without, "survival", true).calibration.brier_score(),
            named(without, "survival", false).calibration.brier_score());
  for (PastAnswer& answer : answers) answer.output_limit = answer.output + Tokens{1};
  const auto with = foretell(answers, {});
  EXPECT_LT(named(with, "survival", true).calibration.brier_score(),
            0.6 * named(with, "survival", false).calibration.brier_score());
}

// Law: nothing is foretold from what came later: the first answers meet predictors that know nothing.
TEST(Foretell, KnowsNothingOfLaterAnswers) {
  const auto few = foretell(answers_of_two_kinds(90), {});
  EXPECT_EQ(named(few, "survival", false).calibration.count(), 0);
  auto cut = answers_of_two_kinds(500);
  for (PastAnswer& answer : cut) answer.complete = false;
  EXPECT_EQ(named(foretell(cut, {}), "survival", false).calibration.count(), 0) << "cut answers have no known length";
}

// Law: a history is studied with its own times and limits; both reports tell the same figures.
TEST(StudyPredictions, ReadsAHistory) {
  const testing_support::TemporaryFolder folder;
  auto records = testing_support::finished_requests(1'000);
  for (std::size_t i = 0; i < records.size(); ++i) {
    records[i].output = Tokens{10 + static_cast<std::int64_t>(i * 37 % 200)};
    records[i].arrived += milliseconds{100 * i};
    records[i].complete = i % 10 != 0;
  }
  ASSERT_TRUE(history::Store::open(folder / "h.db", {}, milliseconds{0})->append(records));
  PredictionParams params;
  params.history.history = (folder / "h.db").string();
  const auto study = study_predictions(params);
  ASSERT_TRUE(study) << study.error();
  EXPECT_EQ(study->answers, 1'000);
  EXPECT_EQ(study->cut, 100);
  EXPECT_EQ(study->limited, 1'000);
  EXPECT_EQ(study->predictors.size(), 4U);
  const auto json = nlohmann::json::parse(prediction_json(*study));
  EXPECT_EQ(json["predictors"][1]["predictor"], "survival");
  EXPECT_EQ(json["predictors"][1]["capped"], true);
  EXPECT_EQ(json["predictors"][1]["predictions"], study->predictors[1].calibration.count());
  EXPECT_EQ(json["predictors"][1]["bins"].size(), 10U);
  EXPECT_THAT(prediction_table(*study), HasSubstr("exact_match capped"));
  EXPECT_FALSE(study_predictions({}));
}

}  // namespace
}  // namespace balanceroute::sim
