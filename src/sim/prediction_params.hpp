// prediction_params.hpp - the settings of `predict eval`.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"
#include "predict/params.hpp"
#include "trace/history_source.hpp"

namespace balanceroute::sim {

struct PredictionParams {
  static constexpr std::int64_t kAll = 0;  // "auto": no limit

  std::string trace;
  trace::HistorySource history;  // in its place
  std::int64_t horizon_steps = 80;
  double step_ms = 25;
  std::int64_t limit = kAll;
  bool skip_bad_rows = false;
  PredictorParams predictor;  // but for its name
  std::string json;

  void visit_params(ParamVisitor& visitor);
};

}  // namespace balanceroute::sim
