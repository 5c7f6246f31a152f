// policy_params.hpp - the settings of routing policies, declared once.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/params.hpp"
#include "policy/br_fit/params.hpp"
#include "predict/params.hpp"

namespace balanceroute {

// PolicyParams chooses a policy and sets it. What is `auto` is what the preset says; with_preset() puts it in.
struct PolicyParams {
  static constexpr std::int64_t kAuto = -1;
  static constexpr std::int64_t kMostCandidates = 1024;

  std::string name = "auto";  // chosen_for() says which policy that is
  std::string preset = "default";

  // The two-stage round of br_0 and br_h.
  std::int64_t r_max = kAuto;
  std::int64_t greedy_threshold = kAuto;
  std::string worker_order = "auto";
  std::int64_t stage1_window = 64;
  std::int64_t max_passes = 64;
  std::int64_t max_wait_ms = kAuto;

  // The look ahead of br_h.
  PredictorParams predictor{};
  std::int64_t horizon_steps = 80;
  double alpha = kAuto;
  double beta = kAuto;
  double gamma = 0.86;
  std::string projection = "auto";
  std::string growth = "auto";
  std::int64_t refresh_steps = 10;

  BrFitParams br_fit{};

  void visit_params(ParamVisitor& visitor);
  // None: the router finds it.
  [[nodiscard]] std::optional<std::chrono::nanoseconds> max_wait() const {
    if (max_wait_ms == kAuto) return std::nullopt;
    return std::chrono::milliseconds{max_wait_ms};
  }
  // All but the name.
  void visit_settings(ParamVisitor& visitor);

 private:
  void visit_round(ParamVisitor& visitor);
  void visit_look_ahead(ParamVisitor& visitor);
};

// `params` with every value that its preset decides; the threshold stays open where the rule for it looks at the round.
[[nodiscard]] PolicyParams with_preset(PolicyParams params);

// One message that names the setting, its value and what was expected.
[[nodiscard]] std::expected<void, std::string> validate(const PolicyParams& params,
                                                        std::string_view prefix = "policy.");

// The common settings of several policies that are compared, for one of them: without what it must not be given, if
// another one takes it.
[[nodiscard]] PolicyParams settings_for(std::string_view name, PolicyParams common,
                                        std::span<const std::string> compared);

// `params` with the policy that `auto` stands for: br_fit, or least_tokens where not every group has a barrier and two
// workers or more to wait for each other.
[[nodiscard]] PolicyParams chosen_for(PolicyParams params, bool all_wait);

// Whether the policy has any sense for a group of so many workers: the br policies even out the waiting at a barrier.
[[nodiscard]] std::expected<void, std::string> validate_for_group(const PolicyParams& params, std::string_view group,
                                                                  std::size_t workers, bool barrier);

}  // namespace balanceroute
