#include "calibrate/calibration.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <span>
#include <vector>

#include "stats/quantiles.hpp"

namespace balanceroute::calibrate {

namespace {

// Where the middle 90 % of the loads lie closer together than this share of their median, noise decides.
constexpr double kLeastSpread = 0.05;
constexpr double kExplainsMost = 0.7;
constexpr double kExplainsNothing = 0.1;
// Of what tokens leave: from here on sequences are worth a term of their own.
constexpr double kWorthATerm = 0.3;

double quantile_of(std::vector<double> values, double q) {
  std::ranges::sort(values);
  return percentile(values, q);
}

// The share of the residuals' variance that a column explains, over the points that count.
std::optional<double> explained_by(const std::vector<double>& column, const RobustFit& fit) {
  if (column.empty()) return std::nullopt;
  std::vector<double> x;
  std::vector<double> left;
  for (std::size_t i = 0; i < column.size(); ++i) {
    if (fit.weights[i] <= 0) continue;
    x.push_back(column[i]);
    left.push_back(fit.residuals[i]);
  }
  const std::array<std::span<const double>, 1> predictors{x};
  const auto of_rest = robust_fit(left, predictors);
  if (!of_rest) return std::nullopt;
  return std::clamp(of_rest->r2, 0.0, 1.0);
}

double deviation_of(const RobustFit& fit) {
  double squares = 0;
  double weights = 0;
  for (std::size_t i = 0; i < fit.residuals.size(); ++i) {
    squares += fit.weights[i] * fit.residuals[i] * fit.residuals[i];
    weights += fit.weights[i];
  }
  return weights > 0 ? std::sqrt(squares / weights) : 0;
}

std::optional<Calibration::WithSequences> fit_with_sequences(const StepSamples& samples) {
  if (samples.sequences.empty()) return std::nullopt;
  const std::array<std::span<const double>, 2> predictors{samples.max_tokens, samples.sequences};
  const auto fit = robust_fit(samples.step_ms, predictors);
  if (!fit) return std::nullopt;
  return Calibration::WithSequences{
      .per_token_ms = fit->slopes[0], .per_sequence_ms = fit->slopes[1], .fixed_ms = fit->constant, .r2 = fit->r2};
}

Verdict verdict_of(const Calibration& found) {
  const bool depends = found.per_token_ms->low > 0 && found.r2 >= kExplainsNothing;
  // A cost of each sequence may hide that of tokens, which then shows beside it.
  const bool beside = found.with_sequences && found.with_sequences->per_token_ms.low > 0 &&
                      found.with_sequences->per_sequence_ms.low > 0 && found.with_sequences->r2 >= kExplainsNothing &&
                      found.by_sequences.value_or(0) >= kWorthATerm;
  if (beside) return Verdict::incomplete;
  if (!depends) return Verdict::poor;
  return found.r2 >= kExplainsMost ? Verdict::good : Verdict::fair;
}

}  // namespace

std::string_view to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::good:
      return "good";
    case Verdict::fair:
      return "fair";
    case Verdict::incomplete:
      return "incomplete";
    case Verdict::poor:
      return "poor";
    case Verdict::no_spread:
      return "no_spread";
    case Verdict::too_few:
      break;
  }
  return "too_few";
}

Calibration calibrate(const StepSamples& samples) {
  Calibration found{.source = samples.source, .steps = samples.size()};
  if (samples.size() < kLeastSteps) return found;
  found.median_tokens = quantile_of(samples.max_tokens, 0.5);
  const double width = quantile_of(samples.max_tokens, 0.95) - quantile_of(samples.max_tokens, 0.05);
  found.spread = found.median_tokens > 0 ? width / found.median_tokens : 0;
  found.verdict = Verdict::no_spread;
  const std::array<std::span<const double>, 1> predictors{samples.max_tokens};
  const auto fit = robust_fit(samples.step_ms, predictors);
  if (!fit || found.spread < kLeastSpread) return found;
  found.per_token_ms = fit->slopes[0];
  found.fixed_ms = fit->constant;
  found.r2 = fit->r2;
  const double of_load = fit->slopes[0].value * found.median_tokens;
  found.load_share = of_load / (of_load + fit->constant.value);
  found.far_off = static_cast<std::size_t>(std::ranges::count(fit->weights, 0.0));
  found.residual_ms = deviation_of(*fit);
  found.by_sequences = explained_by(samples.sequences, *fit);
  found.by_total_tokens = explained_by(samples.total_tokens, *fit);
  found.with_sequences = fit_with_sequences(samples);
  found.verdict = verdict_of(found);
  return found;
}

}  // namespace balanceroute::calibrate
