// params.hpp - the settings of br_fit, declared once.
#pragma once

#include <cstdint>

#include "core/params.hpp"

namespace balanceroute {

// BrFitParams sets br_fit; the defaults were found by simulation on five traces and groups of 4 to 64.
struct BrFitParams {
  static constexpr std::int64_t kAuto = -1;

  std::int64_t fixed_step_tokens = kAuto;
  std::int64_t window = 64;
  std::int64_t window_min = 16;
  double window_share = 0.25;
  std::int64_t window_per_slot = 4;
  double excess_weight = 8;
  double ceiling_share = 0.2;
  double giant_gain = 40;
  double answer_share = 0.5;
  double horizon_weight = 0.1;
  double horizon_near = 0.03;
  double horizon_middle = 0.12;
  double horizon_far = 0.5;
  double lateness_price = 1;
  std::int64_t lateness_min = 16;
  double lateness_share = 0.2;
  double lateness_cap = 8;
  double hold_price = 1;
  std::int64_t hold_rounds = 8;
  std::int64_t passes = 1;
  std::int64_t neighbours = 8;
  std::int64_t refresh_steps = 8;

  void visit_params(ParamVisitor& visitor);

  // Puts in what `auto` leaves to whoever knows how long steps are: fixed_ms + per_token_ms * load.
  void know_step_time(double fixed_ms, double per_token_ms);
  // fixed_step_tokens, or what is assumed while nobody knows.
  [[nodiscard]] double step_tokens() const;
};

}  // namespace balanceroute
