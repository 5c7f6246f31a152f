#include "predict/oracle.hpp"

#include <algorithm>

namespace balanceroute {

Tokens OraclePredictor::remaining(const Request& request, Tokens age) const {
  return std::max(lengths_.output_of(request.id) - age, Tokens{0});
}

Prediction OraclePredictor::predict(const Request& request, Tokens age, Steps horizon) const {
  const Tokens left = remaining(request, age);
  if (left.count() > horizon.count()) return {};
  return {.finish_chance = 1, .mean_remaining = static_cast<double>(left.count())};
}

void OraclePredictor::survival(const Request& request, Tokens age, std::span<std::uint32_t> chances) const {
  const auto first_gone = static_cast<std::size_t>(std::max(remaining(request, age), Tokens{1}).count());
  const std::size_t staying = std::min(first_gone, chances.size());
  std::ranges::fill(chances.first(staying), kCertain);
  std::ranges::fill(chances.subspan(staying), 0);
}

}  // namespace balanceroute
