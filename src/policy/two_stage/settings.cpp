#include "policy/two_stage/settings.hpp"

namespace balanceroute {

TwoStageSettings two_stage_settings(const PolicyParams& params) {
  const PolicyParams full = with_preset(params);
  TwoStageSettings settings{.r_max = static_cast<std::size_t>(full.r_max),
                            .greedy_threshold = full.greedy_threshold,
                            .worker_order = full.worker_order == "capacity" ? WorkerOrder::capacity : WorkerOrder::load,
                            .stage1_window = static_cast<std::size_t>(full.stage1_window),
                            .max_passes = static_cast<std::int32_t>(full.max_passes)};
  if (full.greedy_threshold == PolicyParams::kAuto) settings.greedy_threshold.reset();
  return settings;
}

}  // namespace balanceroute
