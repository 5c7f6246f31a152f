#include "stats/quantiles.hpp"

#include <algorithm>
#include <cassert>
#include <numeric>
#include <utility>

namespace balanceroute {

double percentile(std::span<const double> ascending, double q) {
  assert(q >= 0 && q <= 1);
  if (ascending.empty()) return 0;
  const auto rank = static_cast<std::size_t>(q * static_cast<double>(ascending.size()));
  return ascending[std::min(rank, ascending.size() - 1)];
}

Summary summarize(std::vector<double> values) {
  if (values.empty()) return {};
  std::ranges::sort(values);
  const double total = std::accumulate(values.begin(), values.end(), 0.0);
  return {.count = values.size(),
          .mean = total / static_cast<double>(values.size()),
          .p50 = percentile(values, 0.50),
          .p95 = percentile(values, 0.95),
          .p99 = percentile(values, 0.99),
          .max = values.back()};
}

}  // namespace balanceroute
