// calibration.hpp - whether the load that the router evens out is what makes steps long, and how long it makes them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "calibrate/step_samples.hpp"
#include "stats/robust_fit.hpp"

namespace balanceroute::calibrate {

// How far tokens of the most loaded worker explain the time of a step.
enum class Verdict : std::uint8_t {
  good,        // they explain most of it
  fair,        // a good part
  incomplete,  // sequences explain much of what they leave: the load model `fitted` counts both
  poor,        // next to nothing
  no_spread,   // the load hardly changed, so nothing can be said
  too_few      // steps
};

[[nodiscard]] std::string_view to_string(Verdict verdict);

// Fewer steps give no verdict.
inline constexpr std::size_t kLeastSteps = 30;

// Calibration is T = a * M + b over measured steps, T in ms and M in tokens.
struct Calibration {
  std::string source;
  std::size_t steps = 0;
  Verdict verdict = Verdict::too_few;
  double median_tokens = 0;  // of the most loaded worker: the working point
  double spread = 0;         // of its tokens, the middle 90 %, as a share of the median

  // All below only where there was a fit.
  std::optional<FittedValue> per_token_ms;  // a
  FittedValue fixed_ms;                     // b
  double r2 = 0;
  double load_share = 0;    // of a * M in a step at the working point
  std::size_t far_off = 0;  // steps that were left out
  double residual_ms = 0;   // standard deviation of what the line leaves
  // Shares of the variance that the line leaves, which these explain; none where they are not known or did not change.
  std::optional<double> by_sequences;
  std::optional<double> by_total_tokens;

  // T = a * M + c * sequences + b, where sequences are known and vary beside the tokens.
  struct WithSequences {
    FittedValue per_token_ms;
    FittedValue per_sequence_ms;
    FittedValue fixed_ms;
    double r2 = 0;
  };
  std::optional<WithSequences> with_sequences;
};

[[nodiscard]] Calibration calibrate(const StepSamples& samples);

}  // namespace balanceroute::calibrate
