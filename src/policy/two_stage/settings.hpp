// settings.hpp - the settings of the two-stage procedure, resolved.
#pragma once

#include <cstddef>
#include <cstdint>

#include "policy/policy_params.hpp"

namespace balanceroute {

enum class WorkerOrder : std::uint8_t { load, capacity };

struct TwoStageSettings {
  std::size_t r_max = 4;
  std::int64_t greedy_threshold = 7;
  WorkerOrder worker_order = WorkerOrder::load;
  std::size_t stage1_window = 64;
  std::int32_t max_passes = 64;
};

// What `auto` stands for: the value that the authors of the published procedure tuned for a group of 32.
inline constexpr std::int64_t kAutoGreedyThreshold = 7;

// `params` must be valid.
[[nodiscard]] TwoStageSettings two_stage_settings(const PolicyParams& params);

}  // namespace balanceroute
