// params.hpp - the settings of predictors, declared once.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"

namespace balanceroute {

// PredictorParams chooses a predictor and sets it.
struct PredictorParams {
  std::string name = "survival";
  std::int64_t half_life_requests = 10'000;
  std::int64_t min_requests = 100;
  std::int64_t key_min_requests = 3;
  std::int64_t max_keys = 10'000;

  void visit_params(ParamVisitor& visitor);
  // All but the name.
  void visit_settings(ParamVisitor& visitor);
};

}  // namespace balanceroute
