#include "calibrate/calibration_report.hpp"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace balanceroute::calibrate {

namespace {

using Json = nlohmann::ordered_json;

std::string with_interval(const FittedValue& fitted) {
  return fmt::format("{:.6g}  (95 %: {:.6g} to {:.6g})", fitted.value, fitted.low, fitted.high);
}

double percent(double share) {
  return 100 * share;
}

std::string share_text(const char* of_what, const std::optional<double>& share) {
  if (!share) return fmt::format("  {:<28} not known, or the same in every step\n", of_what);
  return fmt::format("  {:<28} explain {:.0f} % of it\n", of_what, percent(*share));
}

std::string fit_text(const Calibration& found) {
  std::string text = "T = a * M + b      T: time of a step; M: tokens of the most loaded worker\n";
  text += fmt::format("  a   {} ms a token\n", with_interval(*found.per_token_ms));
  text += fmt::format("  b   {} ms\n", with_interval(found.fixed_ms));
  text += fmt::format("  R2  {:.3f}\n", found.r2);
  text += fmt::format("  at the median of {:.0f} tokens, a * M is {:.0f} % of a step\n", found.median_tokens,
                      percent(found.load_share));
  text += fmt::format("  {} steps were too far off to count\n\n", found.far_off);
  text += fmt::format("What the line leaves (standard deviation {:.3g} ms)\n", found.residual_ms);
  text += share_text("sequences of the worker", found.by_sequences);
  text += share_text("tokens of all workers", found.by_total_tokens);
  return text + "\n";
}

std::string verdict_text(const Calibration& found) {
  switch (found.verdict) {
    case Verdict::good:
      return fmt::format(
          "KV tokens are a good measure here: they explain {:.0f} % of the differences between steps, and "
          "{:.0f} % of a step is theirs to shorten.",
          percent(found.r2), percent(found.load_share));
    case Verdict::fair:
      return fmt::format(
          "KV tokens are a fair measure here: they explain {:.0f} % of the differences between steps; the "
          "rest has other causes, which routing by load does not touch.",
          percent(found.r2));
    case Verdict::incomplete:
      return fmt::format(
          "KV tokens alone are an incomplete measure here: sequences explain {:.0f} % of what tokens leave. "
          "The load model `fitted` counts both.",
          percent(found.by_sequences.value_or(0)));
    case Verdict::poor:
      return fmt::format(
          "KV tokens are not a good measure here: they explain {:.0f} % of the differences between steps. "
          "Evening them out will not shorten steps; find out what does before routing by load.",
          percent(std::max(found.r2, 0.0)));
    case Verdict::no_spread:
      return fmt::format(
          "No verdict: the load of the most loaded worker hardly changed (the middle 90 % lie within "
          "{:.1f} % of {:.0f} tokens). Measure while load rises or falls.",
          percent(found.spread), found.median_tokens);
    case Verdict::too_few:
      break;
  }
  return fmt::format("No verdict: {} steps are too few, expected at least {}.", found.steps, kLeastSteps);
}

bool has_settings(Verdict verdict) {
  return verdict == Verdict::good || verdict == Verdict::fair || verdict == Verdict::incomplete;
}

// Tokens that take as long as the part of a step that load does not change.
long long fixed_step_tokens(double fixed_ms, double per_token_ms) {
  return std::llround(std::max(fixed_ms, 0.0) / per_token_ms);
}

std::string settings_text(const Calibration& found) {
  if (!has_settings(found.verdict)) return {};
  const bool with_sequences = found.verdict == Verdict::incomplete;
  const double a = with_sequences ? found.with_sequences->per_token_ms.value : found.per_token_ms->value;
  const double b = with_sequences ? found.with_sequences->fixed_ms.value : found.fixed_ms.value;
  std::string text = "\nFor the router:\n\n  fleets:\n    - ...\n";
  if (with_sequences) {
    text += fmt::format("      load_model: {{kind: fitted, per_token_ms: {:.6g}, per_sequence_ms: {:.6g}}}\n", a,
                        found.with_sequences->per_sequence_ms.value);
  }
  text += fmt::format("      policy: {{br_fit: {{fixed_step_tokens: {}}}}}\n", fixed_step_tokens(b, a));
  text +=
      fmt::format("\nFor simulate and emulate:\n\n  --fixed-ms {:.6g} --per-token-ms {:.6g}\n", std::max(b, 0.0), a);
  return text;
}

Json json_of(const FittedValue& fitted) {
  return {{"value", fitted.value}, {"low", fitted.low}, {"high", fitted.high}};
}

Json json_of(const std::optional<double>& share) {
  return share ? Json(*share) : Json(nullptr);
}

}  // namespace

std::string calibration_text(const Calibration& found) {
  std::string text = fmt::format("{} steps of {}\n\n", found.steps, found.source);
  if (found.per_token_ms) text += fit_text(found);
  return text + verdict_text(found) + "\n" + settings_text(found);
}

std::string calibration_json(const Calibration& found) {
  Json json{{"source", found.source},
            {"steps", found.steps},
            {"verdict", to_string(found.verdict)},
            {"explanation", verdict_text(found)},
            {"median_tokens", found.median_tokens},
            {"spread", found.spread}};
  if (found.per_token_ms) {
    json.update({{"per_token_ms", json_of(*found.per_token_ms)},
                 {"fixed_ms", json_of(found.fixed_ms)},
                 {"r2", found.r2},
                 {"load_share", found.load_share},
                 {"far_off_steps", found.far_off},
                 {"residual_ms", found.residual_ms},
                 {"explained_by_sequences", json_of(found.by_sequences)},
                 {"explained_by_total_tokens", json_of(found.by_total_tokens)}});
  }
  if (found.with_sequences) {
    json["with_sequences"] = {{"per_token_ms", json_of(found.with_sequences->per_token_ms)},
                              {"per_sequence_ms", json_of(found.with_sequences->per_sequence_ms)},
                              {"fixed_ms", json_of(found.with_sequences->fixed_ms)},
                              {"r2", found.with_sequences->r2}};
  }
  return json.dump(2) + "\n";
}

}  // namespace balanceroute::calibrate
