// fleet.hpp - the fleet that a run simulates.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "core/envelope.hpp"
#include "core/ledger.hpp"
#include "core/units.hpp"
#include "engine/group.hpp"
#include "engine/prefill_stage.hpp"
#include "stats/step_table.hpp"
#include "stats/step_time.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::sim {

// Fleet is `groups` groups of `workers` workers, each with `slots` slots; each group steps on its own, as long as its
// most loaded worker needs.
struct Fleet {
  std::size_t groups = 1;
  std::size_t workers = 8;
  std::int32_t slots = 72;
  std::int32_t slots_ahead = 0;  // sequences that may wait in a worker's own queue
  StepTime step_time;
  double tokens_per_step = 1;  // of a running sequence
  KvSpace kv{};                // of a worker
  Tokens kv_block{1};
  LoadModel load_model{};                              // what a worker reads, and what the router counts
  StepTime admission_delay{};                          // from binding to the worker's queue, by prompt tokens
  std::optional<engine::PrefillSettings> prefill{};    // none: prefill takes no time
  std::shared_ptr<const StepTable> step_table{};       // in the place of step_time
  double recompute_per_token_ms = 0;                   // a preempted sequence goes on after that, in its first step
  std::optional<std::chrono::nanoseconds> max_wait{};  // the router's; none: as it finds it

  [[nodiscard]] std::size_t all_workers() const { return groups * workers; }

  // Of a worker with this load, were it alone.
  [[nodiscard]] double step_ms(double load) const {
    return step_table ? step_table->milliseconds(load) : step_time.fixed_ms + step_time.per_token_ms * load;
  }
  // Of a group: of the worker that needs longest, by its load and what it computes anew.
  [[nodiscard]] std::chrono::nanoseconds step_duration(const engine::StepLoads& step,
                                                       std::span<const engine::Recomputed> recomputed = {}) const {
    double longest = step_ms(static_cast<double>(step.envelope.count()));
    for (const engine::Recomputed& its : recomputed) {
      const double reading = step_ms(static_cast<double>(step.loads[its.worker].count()));
      longest = std::max(longest, reading + recompute_ms(its.tokens));
    }
    return std::chrono::nanoseconds{std::llround(longest * 1e6)};
  }
  // Of one that runs nothing.
  [[nodiscard]] std::chrono::nanoseconds empty_step() const { return step_duration({}); }
  // Mean over workers of the time that each is busy in a step.
  [[nodiscard]] double mean_busy_ms(std::span<const Tokens> loads,
                                    std::span<const engine::Recomputed> recomputed = {}) const {
    const auto workers_count = static_cast<double>(loads.size());
    double sum = 0;
    if (step_table) {
      for (const Tokens load : loads) sum += step_ms(static_cast<double>(load.count()));
    } else {
      sum = workers_count * step_ms(static_cast<double>(total_load(loads).count()) / workers_count);
    }
    for (const engine::Recomputed& its : recomputed) sum += recompute_ms(its.tokens);
    return sum / workers_count;
  }

  [[nodiscard]] double recompute_ms(Tokens tokens) const {
    return recompute_per_token_ms * static_cast<double>(tokens.count());
  }

  // As the capacity formula takes it.
  [[nodiscard]] trace::FleetShape shape() const {
    trace::FleetShape shape{.workers = static_cast<std::int64_t>(all_workers()),
                            .slots = slots,
                            .fixed_ms = step_time.fixed_ms,
                            .per_token_ms = step_time.per_token_ms,
                            .tokens_per_step = tokens_per_step,
                            .kv_capacity = static_cast<double>(kv.capacity.count())};
    if (step_table) shape.measured_ms = [table = step_table](double load) { return table->milliseconds(load); };
    return shape;
  }
};

}  // namespace balanceroute::sim
