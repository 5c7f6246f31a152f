#include "predict/params.hpp"

#include "predict/registry.hpp"

namespace balanceroute {

void PredictorParams::visit_params(ParamVisitor& visitor) {
  visitor.choice({"name", "How the length of answers is foretold; oracle reads it from a trace, in a simulation only."},
                 name, predictor_names());
  visit_settings(visitor);
}

void PredictorParams::visit_settings(ParamVisitor& visitor) {
  visitor.integer({"half_life_requests", "Finished requests after which older ones weigh half."}, half_life_requests,
                  {100, 1'000'000'000});
  visitor.integer({"min_requests", "Finished requests before the first prediction from lengths of all."}, min_requests,
                  {1, 1'000'000});
  visitor.integer(
      {"key_min_requests", "Finished requests of one prompt before its own lengths are used (exact_match)."},
      key_min_requests, {1, 32});
  visitor.integer({"max_keys", "Prompts whose lengths are remembered (exact_match); the longest unseen is forgotten."},
                  max_keys, {1, 10'000'000});
}

}  // namespace balanceroute
