#include "policy/br_fit/params.hpp"

#include <algorithm>
#include <cmath>

namespace balanceroute {
namespace {

constexpr std::int64_t kMostStepTokens = 1'000'000'000'000;
constexpr double kAssumedStepTokens = 97'240;  // that of the published simulations

}  // namespace

void BrFitParams::visit_params(ParamVisitor& visitor) {
  visitor.integer_or_auto({"fixed_step_tokens",
                           "The part of a step's time that load does not change, in tokens that take as long; auto is "
                           "what is known of steps, else 97240."},
                          fixed_step_tokens, kAuto, {0, kMostStepTokens});
  visitor.integer({"window", "Most waiting requests chosen from while few slots are free."}, window, {1, 65'536});
  visitor.integer({"window_min", "Fewest waiting requests chosen from, if as many wait."}, window_min, {1, 65'536});
  visitor.real({"window_share", "Between those two bounds, the share of the pool chosen from."}, window_share, {0, 1});
  visitor.integer({"window_per_slot", "At least so many waiting requests are chosen from for each free slot."},
                  window_per_slot, {1, 1'024});
  visitor.real({"excess_weight", "Weight of squared load above the target; below it the weight is 1."}, excess_weight,
               {0, 1e6});
  visitor.real({"ceiling_share", "Below saturation the target is so far up from the mean load to the largest."},
               ceiling_share, {0, 1});
  visitor.real({"giant_gain", "How soon rare large prompts turn even filling into best fit; 0 never."}, giant_gain,
               {0, 1e6});
  visitor.real({"answer_share", "In saturation a request counts with this share of its expected age while it runs."},
               answer_share, {0, 1});
  visitor.real({"horizon_weight", "Weight of the loads expected later against those of now; 0 looks at now only."},
               horizon_weight, {0, 1e3});
  visitor.real({"horizon_near", "First look ahead, in mean answer lengths."}, horizon_near, {0, 10});
  visitor.real({"horizon_middle", "Second look ahead, in mean answer lengths."}, horizon_middle, {0, 10});
  visitor.real({"horizon_far", "Third look ahead, in mean answer lengths."}, horizon_far, {0, 10});
  visitor.real({"lateness_price", "How much the fit may lose to a request that lost places; 0 is nothing."},
               lateness_price, {0, 1e6});
  visitor.integer({"lateness_min", "Least number of lost places that counts as one unit of lateness."}, lateness_min,
                  {1, 1'000'000});
  visitor.real({"lateness_share", "A unit of lateness as a share of the pool, if that is more."}, lateness_share,
               {0, 1e3});
  visitor.real({"lateness_cap", "Units of lateness after which a request takes the next slot."}, lateness_cap,
               {0, 1e6});
  visitor.real({"hold_price", "A slot stays empty if filling it lifts the largest load by so many times its worth."},
               hold_price, {0, 1e6});
  visitor.integer({"hold_rounds", "Most rounds that a request is held, and in a row that a worker takes nothing."},
                  hold_rounds, {0, 1'000'000});
  visitor.integer({"passes", "Times that a round's choices are gone through for improvement."}, passes, {0, 16});
  visitor.integer({"neighbours", "Requests or workers looked at on each side of the wanted size."}, neighbours,
                  {1, 1'024});
  visitor.integer({"refresh_steps", "Steps between full projections of a worker's load."}, refresh_steps, {1, 1'024});
}

void BrFitParams::know_step_time(double fixed_ms, double per_token_ms) {
  if (fixed_step_tokens != kAuto) return;
  // Without a cost per token no load ever matters: the most is as good as infinity.
  const double tokens = per_token_ms > 0 ? fixed_ms / per_token_ms : static_cast<double>(kMostStepTokens);
  fixed_step_tokens = std::llround(std::clamp(tokens, 0.0, static_cast<double>(kMostStepTokens)));
}

double BrFitParams::step_tokens() const {
  return fixed_step_tokens == kAuto ? kAssumedStepTokens : static_cast<double>(fixed_step_tokens);
}

}  // namespace balanceroute
