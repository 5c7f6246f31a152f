#include "stats/step_time_fit.hpp"

#include <algorithm>
#include <cmath>

namespace balanceroute {

namespace {

constexpr double kFewest = 20;  // pairs that say something about their scatter

}  // namespace

void StepTimeFit::record(Tokens envelope, double milliseconds) {
  const double fade = std::exp2(-1 / kHalfLife);
  weight_ = weight_ * fade + 1;
  weight_of_squares_ = weight_of_squares_ * fade * fade + 1;
  const double load_off = static_cast<double>(envelope.count()) - mean_load_;
  const double ms_off = milliseconds - mean_ms_;
  mean_load_ += load_off / weight_;
  mean_ms_ += ms_off / weight_;
  // The means move with each pair (Welford), so the old and the new deviation stand beside each other.
  const double load_left = static_cast<double>(envelope.count()) - mean_load_;
  load_load_ = load_load_ * fade + load_off * load_left;
  load_ms_ = load_ms_ * fade + ms_off * load_left;
  ms_ms_ = ms_ms_ * fade + ms_off * (milliseconds - mean_ms_);
}

std::optional<StepTime> StepTimeFit::line() const {
  const double pairs = weight_of_squares_ > 0 ? weight_ * weight_ / weight_of_squares_ : 0;
  if (pairs < kFewest || load_load_ <= 0 || mean_ms_ <= 0) return std::nullopt;
  const double slope = load_ms_ / load_load_;
  const double unexplained = std::max(ms_ms_ - slope * load_ms_, 0.0) / weight_;
  const double error = std::sqrt(unexplained / (load_load_ / weight_) / (pairs - 2));
  if (error * mean_load_ > kSureShare * mean_ms_) return std::nullopt;
  const double per_token = std::clamp(slope, 0.0, mean_ms_ / mean_load_);
  return StepTime{.fixed_ms = mean_ms_ - per_token * mean_load_, .per_token_ms = per_token};
}

}  // namespace balanceroute
