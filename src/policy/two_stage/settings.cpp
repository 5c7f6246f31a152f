#include "policy/two_stage/settings.hpp"

namespace balanceroute {

TwoStageSettings two_stage_settings(const PolicyParams& params) {
  return {.r_max = static_cast<std::size_t>(params.r_max),
          .greedy_threshold =
              params.greedy_threshold == PolicyParams::kAuto ? kAutoGreedyThreshold : params.greedy_threshold,
          .worker_order = params.worker_order == "capacity" ? WorkerOrder::capacity : WorkerOrder::load,
          .stage1_window = static_cast<std::size_t>(params.stage1_window),
          .max_passes = static_cast<std::int32_t>(params.max_passes)};
}

}  // namespace balanceroute
