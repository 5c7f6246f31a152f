// policy_params.hpp - the settings of routing policies, declared once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>

#include "core/params.hpp"
#include "policy/br_fit/params.hpp"

namespace balanceroute {

// PolicyParams chooses a policy and sets it.
struct PolicyParams {
  static constexpr std::int64_t kAuto = -1;

  std::string name = "br_0";
  std::int64_t r_max = 4;
  std::int64_t greedy_threshold = kAuto;
  std::string worker_order = "load";
  std::int64_t stage1_window = 64;
  std::int64_t max_passes = 64;
  BrFitParams br_fit{};

  void visit_params(ParamVisitor& visitor);
  // All but the name.
  void visit_settings(ParamVisitor& visitor);
};

// One message that names the setting, its value and what was expected.
[[nodiscard]] std::expected<void, std::string> validate(const PolicyParams& params,
                                                        std::string_view prefix = "policy.");

// Whether the policy has any sense for a group of so many workers: the br policies even out the waiting at a barrier.
[[nodiscard]] std::expected<void, std::string> validate_for_group(const PolicyParams& params, std::string_view group,
                                                                  std::size_t workers, bool barrier);

}  // namespace balanceroute
