#include "predict/survival.hpp"

#include <cmath>

namespace balanceroute {

SurvivalPredictor::SurvivalPredictor(const PredictorParams& params)
    : schedule_{params.min_requests, params.half_life_requests},
      min_ends_{static_cast<std::size_t>(params.min_requests)},
      half_life_{static_cast<std::size_t>(params.half_life_requests)},
      next_halving_{half_life_} {}

void SurvivalPredictor::ended(const Request& request, Tokens generated, LeaseEnd how) {
  schedule_.count();
  if (how == LeaseEnd::cut) return lengths_.cut({request.generated, generated});
  // Whether it would have gone on past its limit is not known; that it went on up to there is.
  if (met_limit(request, generated)) return lengths_.cut({request.generated, request.output_limit - Tokens{1}});
  lengths_.ended({request.generated, generated});
  if (lengths_.ends() < next_halving_) return;
  next_halving_ = lengths_.ends() + half_life_;
  lengths_.halve();
}

void SurvivalPredictor::renew(std::span<const LifeSpan> running) {
  schedule_.renewed();
  if (lengths_.ends() >= min_ends_) lengths_.fill(curve_, running);
}

Prediction SurvivalPredictor::predict(const Request&, Tokens age, Steps horizon) const {
  const Tokens ahead{horizon.count()};
  const double staying = curve_.conditional(age, ahead);
  return prediction(1 - staying, curve_.mean_within(age, ahead), horizon);
}

void SurvivalPredictor::survival(const Request&, Tokens age, std::span<std::uint32_t> chances) const {
  for (std::size_t h = 0; h < chances.size(); ++h) {
    chances[h] = fixed_point(curve_.conditional(age, Tokens{static_cast<std::int64_t>(h)}));
  }
}

}  // namespace balanceroute
