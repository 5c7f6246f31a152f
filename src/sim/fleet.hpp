// fleet.hpp - the fleet that a run simulates.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "core/ledger.hpp"
#include "core/units.hpp"
#include "engine/group.hpp"
#include "engine/prefill_stage.hpp"
#include "stats/step_time.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::sim {

// Fleet is `groups` groups of `workers` workers, each with `slots` slots; each group steps on its own, as long as its
// most loaded worker needs.
struct Fleet {
  std::size_t groups = 1;
  std::size_t workers = 8;
  std::int32_t slots = 72;
  StepTime step_time;
  KvSpace kv{};  // of a worker
  Tokens kv_block{1};
  LoadModel load_model{};                            // what a worker reads, and what the router counts
  StepTime admission_delay{};                        // from binding to the worker's queue, by prompt tokens
  std::optional<engine::PrefillSettings> prefill{};  // none: prefill takes no time

  [[nodiscard]] std::size_t all_workers() const { return groups * workers; }

  // As the capacity formula takes it.
  [[nodiscard]] trace::FleetShape shape() const {
    return {.workers = static_cast<std::int64_t>(all_workers()),
            .slots = slots,
            .fixed_ms = step_time.fixed_ms,
            .per_token_ms = step_time.per_token_ms,
            .kv_capacity = static_cast<double>(kv.capacity.count())};
  }
};

}  // namespace balanceroute::sim
