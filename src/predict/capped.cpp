#include "predict/capped.hpp"

#include <algorithm>

namespace balanceroute {
namespace {

// Steps that a request may still take.
std::int64_t steps_left(const Request& request, Tokens age) {
  return std::max<std::int64_t>((request.output_limit - age).count(), 0);
}

}  // namespace

Prediction Capped::predict(const Request& request, Tokens age, Steps horizon) const {
  const Steps left{steps_left(request, age)};
  if (left > horizon) return inner_->predict(request, age, horizon);
  if (left == Steps{0}) return {.finish_chance = 1, .mean_remaining = 0};
  // It ends by its limit for certain; min(remaining, left) is what the other expects within that many steps.
  return {.finish_chance = 1, .mean_remaining = inner_->predict(request, age, left).remaining(left)};
}

void Capped::survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const {
  inner_->survival(request, age, chances);
  const auto first_gone = static_cast<std::size_t>(std::max<std::int64_t>(steps_left(request, age), 1));
  if (first_gone < chances.size()) std::ranges::fill(chances.subspan(first_gone), 0);
}

}  // namespace balanceroute
