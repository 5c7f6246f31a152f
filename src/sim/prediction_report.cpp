// How `predict eval` tells what it found, to a person and to a program.
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/prediction_study.hpp"
#include "sim/text_table.hpp"

namespace balanceroute::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string label(const PredictorResult& result) {
  return result.name + (result.capped ? " capped" : "");
}

double share(std::int64_t part, std::int64_t whole) {
  return whole > 0 ? static_cast<double>(part) / static_cast<double>(whole) : 0;
}

// Of what always saying the mean leaves wrong, the share that is put right; below 0 it is worse than that.
double skill(const Calibration& calibration) {
  const double reference = calibration.brier_reference();
  return reference > 0 ? 1 - calibration.brier_score() / reference : 0;
}

std::string scores(const PredictionStudy& study) {
  TextTable table;
  table.add({"predictor", "predictions", "foretold", "happened", "Brier", "of the mean", "skill", "error tokens",
             "prompts known"});
  for (const PredictorResult& result : study.predictors) {
    const Calibration& calibration = result.calibration;
    table.add({label(result), fmt::format("{}", calibration.count()),
               fmt::format("{:.3f}", calibration.mean_predicted()), fmt::format("{:.3f}", calibration.mean_happened()),
               fmt::format("{:.4f}", calibration.brier_score()), fmt::format("{:.4f}", calibration.brier_reference()),
               fmt::format("{:.1f} %", 100 * skill(calibration)), fmt::format("{:.1f}", result.mean_error_tokens),
               result.key_hits.requests > 0
                   ? fmt::format("{:.1f} %", 100 * share(result.key_hits.hits, result.key_hits.requests))
                   : "-"});
  }
  return table.text();
}

std::string tenth(std::size_t bin) {
  return fmt::format("{:.1f}-{:.1f}", static_cast<double>(bin) / Calibration::kBins,
                     static_cast<double>(bin + 1) / Calibration::kBins);
}

// What happened, by what was foretold.
std::string calibrations(const PredictionStudy& study) {
  TextTable table;
  std::vector<std::string> head{"foretold"};
  for (const PredictorResult& result : study.predictors) head.push_back(label(result));
  table.add(std::move(head));
  for (std::size_t b = 0; b < Calibration::kBins; ++b) {
    std::vector<std::string> row{tenth(b)};
    for (const PredictorResult& result : study.predictors) {
      const Calibration::Bin& bin = result.calibration.bins()[b];
      row.push_back(bin.count > 0 ? fmt::format("{:.3f} of {}", share(bin.happened, bin.count), bin.count) : "-");
    }
    table.add(std::move(row));
  }
  return table.text();
}

Json json_of(const PredictorResult& result) {
  const Calibration& calibration = result.calibration;
  Json bins = Json::array();
  for (const Calibration::Bin& bin : calibration.bins()) {
    bins.push_back({{"predictions", bin.count},
                    {"mean_predicted", bin.count > 0 ? bin.predicted / static_cast<double>(bin.count) : 0},
                    {"mean_happened", share(bin.happened, bin.count)}});
  }
  return {{"predictor", result.name},
          {"capped", result.capped},
          {"predictions", calibration.count()},
          {"mean_predicted", calibration.mean_predicted()},
          {"mean_happened", calibration.mean_happened()},
          {"brier_score", calibration.brier_score()},
          {"brier_reference", calibration.brier_reference()},
          {"skill", skill(calibration)},
          {"mean_error_tokens", result.mean_error_tokens},
          {"key_requests", result.key_hits.requests},
          {"key_hits", result.key_hits.hits},
          {"bins", std::move(bins)}};
}

}  // namespace

std::string prediction_table(const PredictionStudy& study) {
  return fmt::format(
      "{}: {} answers, {} of them cut; {} had an output limit, {} a prompt that can be known again\n"
      "Foretold at the first token and each {} tokens on: does the answer end within {}?\n\n{}\n"
      "What happened, by what was foretold:\n\n{}",
      study.source, study.answers, study.cut, study.limited, study.keyed, study.horizon_steps + 1, study.horizon_steps,
      scores(study), calibrations(study));
}

std::string prediction_json(const PredictionStudy& study) {
  Json predictors = Json::array();
  for (const PredictorResult& result : study.predictors) predictors.push_back(json_of(result));
  const Json all{{"source", study.source},
                 {"horizon_steps", study.horizon_steps},
                 {"answers", study.answers},
                 {"cut", study.cut},
                 {"limited", study.limited},
                 {"keyed", study.keyed},
                 {"predictors", std::move(predictors)}};
  return all.dump(2) + "\n";
}

}  // namespace balanceroute::sim
