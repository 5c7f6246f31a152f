#include "predict/exact_match.hpp"

#include <algorithm>
#include <utility>

namespace balanceroute {

ExactMatch::ExactMatch(const PredictorParams& params, std::unique_ptr<Predictor> fallback)
    : fallback_{std::move(fallback)},
      history_{static_cast<std::size_t>(params.max_keys)},
      schedule_{params.key_min_requests, params.half_life_requests},
      min_answers_{static_cast<std::size_t>(params.key_min_requests)} {}

void ExactMatch::ended(const Request& request, Tokens generated, LeaseEnd how) {
  fallback_->ended(request, generated, how);
  schedule_.count();
  ++hits_.requests;
  if (request.prompt_key == 0) return;
  if (history_.of(request.prompt_key).size() >= min_answers_) ++hits_.hits;
  if (how == LeaseEnd::cut) return;
  since_.push_back({request.prompt_key, met_limit(request, generated) ? kMaxTokens : generated});
}

void ExactMatch::renew(std::span<const LifeSpan> running) {
  schedule_.renewed();
  for (const Finished& finished : since_) history_.add(finished.key, finished.length);
  since_.clear();
  fallback_->renew(running);
}

ExactMatch::Known ExactMatch::known(const Request& request, Tokens age) const {
  if (request.prompt_key == 0) return {};
  const auto lengths = history_.of(request.prompt_key);
  if (lengths.size() < min_answers_) return {};
  return {lengths, std::ranges::count_if(lengths, [age](Tokens length) { return length > age; })};
}

Prediction ExactMatch::predict(const Request& request, Tokens age, Steps horizon) const {
  const Known answers = known(request, age);
  if (answers.longer == 0) return fallback_->predict(request, age, horizon);
  const Tokens ahead{horizon.count()};
  std::int64_t ending = 0;
  Tokens within{0};  // sum of min(remaining, horizon)
  for (const Tokens length : answers.lengths) {
    if (length <= age) continue;
    ending += length - age <= ahead ? 1 : 0;
    within += std::min(length - age, ahead);
  }
  const auto longer = static_cast<double>(answers.longer);
  return prediction(static_cast<double>(ending) / longer, static_cast<double>(within.count()) / longer, horizon);
}

// Counts the ends at each step ahead in place, then what is left after them.
void ExactMatch::survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const {
  const Known answers = known(request, age);
  if (answers.longer == 0) return fallback_->survival(request, age, chances);
  std::ranges::fill(chances, 0);
  for (const Tokens length : answers.lengths) {
    const auto remaining = static_cast<std::size_t>(std::max(length - age, Tokens{0}).count());
    if (remaining > 0 && remaining < chances.size()) ++chances[remaining];
  }
  std::int64_t left = answers.longer;
  for (std::uint32_t& chance : chances) {
    left -= chance;
    chance = fixed_point(static_cast<double>(left) / static_cast<double>(answers.longer));
  }
}

}  // namespace balanceroute
