// imbalance_meter.hpp - how uneven the loads of one group were, over many steps.
//
// Ratios of sums over steps, never means of ratios: a long step counts as much as it lasts.
#pragma once

#include <cstdint>
#include <span>

#include "core/units.hpp"
#include "stats/step_time.hpp"

namespace balanceroute {

// ImbalanceMeter adds up what each step's loads were worth.
//   Units    loads in tokens a step; all means are over steps.
//   Empty    every mean and fraction is 0 before the first step.
//   Threads  not synchronised.
class ImbalanceMeter {
 public:
  // One step of a group with these loads, an entry a worker at the barrier.
  void record(std::span<const Tokens> loads);
  // Adds what another meter recorded, for figures of several groups.
  ImbalanceMeter& operator+=(const ImbalanceMeter& other);

  [[nodiscard]] std::int64_t steps() const { return steps_; }
  [[nodiscard]] double envelope_mean() const { return per_step(envelope_); }
  [[nodiscard]] double load_mean() const { return per_step(mean_load_); }  // of a worker
  [[nodiscard]] double spread_mean() const { return per_step(spread_); }
  [[nodiscard]] double imbalance_mean() const { return per_step(imbalance_); }

  // The share of reading capacity lost: sum of (envelope - mean load) / sum of envelope.
  [[nodiscard]] double load_idle_fraction() const;
  // The share of worker time lost if steps last as `time` says. Modelled, not measured.
  [[nodiscard]] double barrier_idle_fraction(StepTime time) const;

 private:
  [[nodiscard]] double per_step(double sum) const { return steps_ == 0 ? 0 : sum / static_cast<double>(steps_); }

  std::int64_t steps_ = 0;
  double envelope_ = 0;
  double mean_load_ = 0;
  double spread_ = 0;
  double imbalance_ = 0;
};

}  // namespace balanceroute
