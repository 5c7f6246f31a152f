#include "proxy/fallback.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace balanceroute::proxy {

namespace {

constexpr net::Duration kMinute = std::chrono::minutes{1};
constexpr double kDayMs = 86'400'000;
// A score so little above the constant's harms nobody: where nearly all requests end alike the constant's is 0.
constexpr double kNegligible = 0.01;

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
}

}  // namespace

void FallbackParams::visit_params(ParamVisitor& visitor) {
  visitor.flag({"enabled", "Whether a policy that does not do well gives way to a simpler one until it may again."},
               enabled);
  visitor.real(
      {"drift_window_ms",
       "For so long a predictor must be worse than a constant before br_h gives way to br_0, and no worse before "
       "it decides again."},
      drift_window_ms, {1, kDayMs});
  visitor.integer({"drift_outcomes", "Outcomes of predictions that are judged at least, however long that takes."},
                  drift_outcomes, {1, 1'000'000});
  visitor.real({"drift_margin", "By how much of the constant's Brier score the predictor's must be worse."},
               drift_margin, {0, 10});
  visitor.real({"slow_round_ms", "A round that takes longer is slow."}, slow_round_ms, {0.001, 60'000});
  visitor.integer({"slow_rounds", "Slow rounds within a minute after which the policy gives way to least_tokens."},
                  slow_rounds, {1, 1'000'000});
  visitor.real(
      {"rest_ms",
       "After an error or slow rounds the policy decides again when so long has passed; if that goes wrong too, "
       "twice as long."},
      rest_ms, {1, kDayMs});
  visitor.real({"longest_rest_ms", "What that time never exceeds."}, longest_rest_ms, {1, kDayMs});
  visitor.real(
      {"mirror_share",
       "Share of the workers whose engines contradict the ledger at which round_robin decides, as loads cannot "
       "be trusted."},
      mirror_share, {0.01, 1});
  visitor.real({"mirror_after_ms", "For so long, and for so long fewer before the policy decides again."},
               mirror_after_ms, {0, kDayMs});
}

std::string_view to_string(FallbackCause cause) {
  switch (cause) {
    case FallbackCause::drift:
      return "drift";
    case FallbackCause::policy_error:
      return "policy_error";
    case FallbackCause::slow_rounds:
      return "slow_rounds";
    case FallbackCause::mirror:
      return "mirror";
  }
  std::unreachable();
}

std::string_view simpler_policy(FallbackCause cause, std::string_view policy) {
  if (policy == "round_robin" || policy == "random") return {};
  switch (cause) {
    case FallbackCause::drift:
      return policy == "br_h" ? "br_0" : "";
    case FallbackCause::policy_error:
    case FallbackCause::slow_rounds:
      return policy == "least_tokens" ? "" : "least_tokens";
    case FallbackCause::mirror:
      return "round_robin";
  }
  std::unreachable();
}

std::vector<std::string_view> causes_in_force(const FallbackStatus& status) {
  std::vector<std::string_view> names;
  for (const FallbackCause cause : kFallbackCauses) {
    if (status.causes[static_cast<std::size_t>(cause)].holds) names.push_back(to_string(cause));
  }
  return names;
}

void Fallback::reset(net::TimePoint now, const PolicySigns& signs) {
  for (State& state : causes_) state.holds = false;
  window_ = signs.predictions.value_or(Calibration{});
  window_since_ = now;
  take_up(now, signs);
  rest_until_ = net::kNever;
  rests_ = 0;
  mirror_changes_.reset();
}

void Fallback::observe(net::TimePoint now, const PolicySigns& signs) {
  if (!params_.enabled) return reset(now, signs);
  watch_predictions(now, signs.predictions);
  watch_rounds(now, signs);
  watch_mirror(now, signs.mirror_share);
}

std::optional<FallbackCause> Fallback::cause() const {
  for (auto cause = kFallbackCauses.rbegin(); cause != kFallbackCauses.rend(); ++cause) {
    if (holds(*cause)) return *cause;
  }
  return std::nullopt;
}

void Fallback::set(FallbackCause cause, bool holds) {
  State& state = causes_[index(cause)];
  if (holds && !state.holds) ++state.times;
  state.holds = holds;
}

void Fallback::watch_predictions(net::TimePoint now, const std::optional<Calibration>& predictions) {
  if (!predictions) return;
  const Calibration seen = predictions->since(window_);
  if (now - window_since_ < milliseconds(params_.drift_window_ms) || seen.count() < params_.drift_outcomes) return;
  const double constant = seen.brier_reference();
  if (seen.brier_score() > constant * (1 + params_.drift_margin) + kNegligible) set(FallbackCause::drift, true);
  if (seen.brier_score() <= constant + kNegligible / 2) set(FallbackCause::drift, false);
  window_ = *predictions;
  window_since_ = now;
}

void Fallback::watch_rounds(net::TimePoint now, const PolicySigns& signs) {
  if (holds(FallbackCause::policy_error) || holds(FallbackCause::slow_rounds)) {
    if (now < rest_until_) return;
    take_up(now, signs);
    set(FallbackCause::policy_error, false);
    set(FallbackCause::slow_rounds, false);
    return;
  }
  rounds_.push_back({now, signs.slow_rounds});
  while (now - rounds_.front().at > kMinute) rounds_.pop_front();
  const auto slow = static_cast<std::int64_t>(signs.slow_rounds - rounds_.front().slow_rounds);
  if (std::exchange(errors_, signs.policy_errors) != signs.policy_errors) {
    rest(now, FallbackCause::policy_error);
  } else if (slow >= params_.slow_rounds) {
    rest(now, FallbackCause::slow_rounds);
  }
}

// Twice as long as the last time, unless it has done well for longer than that since.
void Fallback::rest(net::TimePoint now, FallbackCause cause) {
  const auto length = [this] {
    const auto doublings = static_cast<int>(std::min<std::int64_t>(rests_, 30));
    return milliseconds(std::min(std::ldexp(params_.rest_ms, doublings), params_.longest_rest_ms));
  };
  if (now - decides_since_ > length()) rests_ = 0;
  rest_until_ = now + length();
  ++rests_;
  set(cause, true);
}

// What was before is no reason against the policy any more.
void Fallback::take_up(net::TimePoint now, const PolicySigns& signs) {
  errors_ = signs.policy_errors;
  rounds_.assign(1, {now, signs.slow_rounds});
  decides_since_ = now;
}

void Fallback::watch_mirror(net::TimePoint now, double share) {
  const bool distrusted = share >= params_.mirror_share;
  if (distrusted == holds(FallbackCause::mirror)) return mirror_changes_.reset();
  if (!mirror_changes_) mirror_changes_ = now;
  if (now - *mirror_changes_ < milliseconds(params_.mirror_after_ms)) return;
  set(FallbackCause::mirror, distrusted);
  mirror_changes_.reset();
}

}  // namespace balanceroute::proxy
