// quantiles.hpp - exact means and percentiles of measured values.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace balanceroute {

// The value of rank floor(q * n) among n ascending values (0 is the first, the last for q = 1); 0 for none.
[[nodiscard]] double percentile(std::span<const double> ascending, double q);

// Summary is what a report says of one measure; all 0 for no values.
struct Summary {
  std::size_t count = 0;
  double mean = 0;
  double p50 = 0;
  double p95 = 0;
  double p99 = 0;
  double max = 0;
};

[[nodiscard]] Summary summarize(std::vector<double> values);

}  // namespace balanceroute
