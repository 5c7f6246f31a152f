// robust_fit.hpp - a line or a plane through points of which some are far off.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <vector>

namespace balanceroute {

// A fitted value and the ends of its 95 % interval.
struct FittedValue {
  double value = 0;
  double low = 0;
  double high = 0;
};

// RobustFit is y = constant + sum of slopes[i] * predictors[i].
struct RobustFit {
  FittedValue constant;
  std::vector<FittedValue> slopes;
  double r2 = 0;                  // share of the variance explained, points weighted as in the fit
  std::vector<double> residuals;  // y less the fit, by point
  std::vector<double> weights;    // 0 of points that are too far off to count, at most 1
};

// Fits by iterated weighted least squares: first least absolute deviations, then Tukey's biweight (tuning constant
// 4.685) with the scale of the former's residuals (median absolute deviation). Intervals are normal ones with the
// sandwich estimate of the variance, so noise may grow with a predictor; points are taken for independent.
//   Shapes   every predictor as long as y, one to three of them.
//   Errors   none if a predictor is constant or follows from the others, or there are fewer than 2 points a
//   coefficient. Cost     O(points) in about 60 passes. Source   Huber and Ronchetti, Robust Statistics (2009),
//   chapters 7.3 and 7.8.
[[nodiscard]] std::optional<RobustFit> robust_fit(std::span<const double> y,
                                                  std::span<const std::span<const double>> predictors);

}  // namespace balanceroute
