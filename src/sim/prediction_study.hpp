// prediction_study.hpp - how well predictors would have foretold the answers of recorded requests.
//
// The requests are gone through in time: a prediction is made with what was known at that moment and nothing later.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <string>
#include <vector>

#include "core/request.hpp"
#include "core/units.hpp"
#include "predict/calibration.hpp"
#include "predict/predictor.hpp"
#include "sim/prediction_params.hpp"

namespace balanceroute::sim {

// One answer, as it was.
struct PastAnswer {
  std::chrono::nanoseconds start{0};  // of generation
  std::chrono::nanoseconds end{0};
  Tokens prompt;
  Tokens output;
  Tokens output_limit = kMaxTokens;
  std::uint64_t prompt_key = 0;
  bool complete = true;  // false: cut; how long it would have been is not known
};

// What one predictor foretold. `capped` ones know the limits that requests had, the others do not.
struct PredictorResult {
  std::string name;
  bool capped = false;
  Calibration calibration;
  KeyHits key_hits;
  // Of the tokens to come within the horizon, as foretold against as they were; 0 without predictions.
  double mean_error_tokens = 0;
};

struct PredictionStudy {
  std::string source;
  std::int64_t horizon_steps = 0;
  std::int64_t answers = 0;
  std::int64_t cut = 0;
  std::int64_t limited = 0;  // that had an output limit
  std::int64_t keyed = 0;    // whose prompt could be known again
  std::vector<PredictorResult> predictors;
};

// Answers in order of their starts.
[[nodiscard]] std::vector<PredictorResult> foretell(const std::vector<PastAnswer>& answers,
                                                    const PredictionParams& params);

[[nodiscard]] std::expected<PredictionStudy, std::string> study_predictions(const PredictionParams& params);

[[nodiscard]] std::string prediction_table(const PredictionStudy& study);
[[nodiscard]] std::string prediction_json(const PredictionStudy& study);

}  // namespace balanceroute::sim
