// run_meter.hpp - what one simulated run was worth: the figures of its measured window.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/group.hpp"
#include "sim/fleet.hpp"
#include "sim/request_stream.hpp"
#include "stats/imbalance_meter.hpp"
#include "stats/quantiles.hpp"
#include "stats/values_by_length.hpp"

namespace balanceroute::sim {

// RunResult is the figures of one run's measured window; all 0 if it has no step.
//   Ratios  of sums over steps or over time, never means of ratios.
//   Bound   the throughput if each step lasted as its mean load needs: what perfect balance would reach with the very
//           same steps.
struct RunResult {
  bool non_stationary = false;  // the mean number of active sequences differs by more than 5 % between its halves
  std::int64_t steps = 0;
  double spread_mean_tokens = 0;
  double imbalance_mean_tokens = 0;
  double load_idle_fraction = 0;
  double barrier_idle_fraction = 0;
  double throughput_tokens_per_s = 0;
  double bound_throughput_tokens_per_s = 0;
  double bound_share = 0;
  double step_ms_mean = 0;
  Summary tpot_ms;       // of requests that finished; none for one token
  Summary ttft_ms;       // arrival to first token
  Summary pool_wait_ms;  // from prefill to admission, in the pool or in a worker's queue
  double active_mean = 0;
  double busy_fraction = 0;               // active over all slots
  double slot_idle_fraction = 0;          // the rest
  double slot_idle_waiting_fraction = 0;  // the part of it that requests were waiting for
  ValuesByLength::ByBucket tpot_by_prompt_ms{};
  ValuesByLength::ByBucket tpot_by_output_ms{};
  ValuesByLength::ByBucket wait_by_prompt_ms{};
  ValuesByLength::ByBucket wait_by_output_ms{};
  std::int64_t forced_admissions = 0;
  std::int64_t preemptions = 0;
  std::int64_t recomputed_tokens = 0;  // for sequences that went on after a preemption
  double energy_joule_per_token = 0;
};

// RunMeter adds up the measured window of one run.
//   Threads  not synchronised.
class RunMeter {
 public:
  explicit RunMeter(const Fleet& fleet) : fleet_{fleet} {}

  // The half of the window that is being measured, 0 or 1.
  void enter_half(std::size_t half) { half_ = half; }

  // What else is to be said of a step: sequences preempted at its start, what workers compute anew in it, requests that
  // the router has then.
  struct Around {
    std::size_t preempted = 0;
    std::span<const engine::Recomputed> recomputed{};
    std::size_t waiting = 0;
  };
  // One step of one group.
  void step(const engine::StepLoads& loads, Nanoseconds duration, Around around);
  // Tokens of measured steps that were beyond the ends of their answers.
  void thrown_away(Tokens tokens) { tokens_ -= tokens.count(); }
  // One group had nothing to do.
  void idle(Nanoseconds duration);

  void admitted(Nanoseconds waited, bool forced, const RequestLengths& lengths);
  void first_token(Nanoseconds since_arrival) { ttft_.push_back(milliseconds(since_arrival)); }
  // All tokens were generated, those after the first one in that time.
  void finished(Nanoseconds since_first_token, const RequestLengths& lengths);

  [[nodiscard]] RunResult result() const;

 private:
  struct Half {
    double seconds = 0;         // summed over groups
    double active_seconds = 0;  // sequences times time

    [[nodiscard]] double active() const { return seconds > 0 ? active_seconds / seconds : 0; }
  };

  [[nodiscard]] static double milliseconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e6; }
  [[nodiscard]] static double seconds(Nanoseconds time) { return static_cast<double>(time.count()) / 1e9; }
  [[nodiscard]] bool halves_differ() const;
  void tell_slots(RunResult& result, double elapsed) const;
  void tell_times(RunResult& result) const;

  Fleet fleet_;
  std::size_t half_ = 0;
  std::array<Half, 2> halves_;
  ImbalanceMeter loads_;
  double stepping_seconds_ = 0;  // summed over groups
  double busy_seconds_ = 0;      // the same, of a worker on average
  double joule_ = 0;
  std::int64_t tokens_ = 0;
  std::int64_t forced_ = 0;
  std::int64_t preempted_ = 0;
  Tokens recomputed_{0};
  double slot_seconds_awaited_ = 0;  // of free slots, while requests waited
  ValuesByLength tpot_;
  std::vector<double> ttft_;
  ValuesByLength waits_;
};

}  // namespace balanceroute::sim
