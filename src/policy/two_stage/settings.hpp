// settings.hpp - the settings of the two-stage procedure, resolved.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "policy/policy_params.hpp"

namespace balanceroute {

enum class WorkerOrder : std::uint8_t { load, capacity };

struct TwoStageSettings {
  std::size_t r_max = 4;
  std::optional<std::int64_t> greedy_threshold = 7;  // none: auto
  WorkerOrder worker_order = WorkerOrder::load;
  std::size_t stage1_window = 64;
  std::int32_t max_passes = 64;
};

// What `auto` stands for in a round that finds so many free slots: half of them, rounded up. See
// docs/decisions/0008-half-of-the-slots-one-by-one.md.
[[nodiscard]] constexpr std::int64_t auto_greedy_threshold(std::int64_t free_slots) {
  return (free_slots + 1) / 2;
}

// `params` must be valid. What is auto is what the preset says.
[[nodiscard]] TwoStageSettings two_stage_settings(const PolicyParams& params);

}  // namespace balanceroute
