// rank_metrics.hpp - a rank's state as vLLM's Prometheus series.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/units.hpp"
#include "emulator/stepping_group.hpp"

namespace balanceroute::emulator {

// Sequences that ended, by vLLM's finished_reason.
struct FinishedCounters {
  std::int64_t stop = 0;
  std::int64_t length = 0;
  std::int64_t abort = 0;
};

// The text of /metrics. The KV cache has room for every slot at full context, so it is never exhausted.
[[nodiscard]] std::string rank_metrics(const SteppingGroup& group, std::size_t rank, const std::string& model,
                                       Tokens max_model_len, const FinishedCounters& finished);

}  // namespace balanceroute::emulator
