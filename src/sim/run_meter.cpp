#include "sim/run_meter.hpp"

#include <algorithm>
#include <cmath>

#include "sim/power_model.hpp"

namespace balanceroute::sim {
namespace {

constexpr double kStationaryWithin = 0.05;

}  // namespace

void RunMeter::step(const engine::StepLoads& loads, Nanoseconds duration, Around around) {
  const double time = seconds(duration);
  preempted_ += static_cast<std::int64_t>(around.preempted);
  loads_.record(loads.loads);
  stepping_seconds_ += time;
  busy_seconds_ += fleet_.mean_busy_ms(loads.loads, around.recomputed) / 1e3;
  for (const engine::Recomputed& its : around.recomputed) recomputed_ += its.tokens;
  halves_[half_].seconds += time;
  halves_[half_].active_seconds += static_cast<double>(loads.active) * time;
  tokens_ += loads.active * loads.growth.count();
  const std::int64_t free = static_cast<std::int64_t>(fleet_.workers) * fleet_.slots - loads.active;
  slot_seconds_awaited_ += static_cast<double>(std::min(free, static_cast<std::int64_t>(around.waiting))) * time;
  joule_ += group_watts(loads.loads, loads.envelope) * time;
}

void RunMeter::idle(Nanoseconds duration) {
  halves_[half_].seconds += seconds(duration);
  joule_ += worker_watts(0) * static_cast<double>(fleet_.workers) * seconds(duration);
}

void RunMeter::admitted(Nanoseconds waited, bool forced, const RequestLengths& lengths) {
  waits_.record(lengths, milliseconds(waited));
  forced_ += forced ? 1 : 0;
}

void RunMeter::finished(Nanoseconds since_first_token, const RequestLengths& lengths) {
  const Tokens after_first = lengths.output - Tokens{1};
  if (after_first <= Tokens{0}) return;
  tpot_.record(lengths, milliseconds(since_first_token) / static_cast<double>(after_first.count()));
}

bool RunMeter::halves_differ() const {
  const double first = halves_[0].active();
  const double second = halves_[1].active();
  return std::abs(first - second) > kStationaryWithin * (first + second) / 2 || loads_.steps() == 0;
}

RunResult RunMeter::result() const {
  RunResult result{.non_stationary = halves_differ()};
  if (loads_.steps() == 0) return result;
  const auto groups = static_cast<double>(fleet_.groups);
  const double elapsed = (halves_[0].seconds + halves_[1].seconds) / groups;
  const auto tokens = static_cast<double>(tokens_);
  result.steps = loads_.steps();
  result.spread_mean_tokens = loads_.spread_mean();
  result.imbalance_mean_tokens = loads_.imbalance_mean();
  result.load_idle_fraction = loads_.load_idle_fraction();
  result.barrier_idle_fraction = std::max(0.0, 1 - busy_seconds_ / stepping_seconds_);
  const double saved_seconds = stepping_seconds_ * result.barrier_idle_fraction / groups;
  if (elapsed > 0) result.throughput_tokens_per_s = tokens / elapsed;
  if (elapsed > saved_seconds) result.bound_throughput_tokens_per_s = tokens / (elapsed - saved_seconds);
  if (elapsed > 0) result.bound_share = (elapsed - saved_seconds) / elapsed;
  result.step_ms_mean = stepping_seconds_ * 1e3 / static_cast<double>(loads_.steps());
  result.forced_admissions = forced_;
  result.preemptions = preempted_;
  result.recomputed_tokens = recomputed_.count();
  result.energy_joule_per_token = joule_ / tokens;
  tell_slots(result, elapsed);
  tell_times(result);
  return result;
}

void RunMeter::tell_slots(RunResult& result, double elapsed) const {
  if (elapsed <= 0) return;
  const double slots = static_cast<double>(fleet_.all_workers()) * fleet_.slots;
  result.active_mean = (halves_[0].active_seconds + halves_[1].active_seconds) / elapsed;
  result.busy_fraction = result.active_mean / slots;
  result.slot_idle_fraction = 1 - result.busy_fraction;
  result.slot_idle_waiting_fraction = slot_seconds_awaited_ / (slots * elapsed);
}

void RunMeter::tell_times(RunResult& result) const {
  result.tpot_ms = tpot_.all();
  result.tpot_by_prompt_ms = tpot_.by_prompt();
  result.tpot_by_output_ms = tpot_.by_output();
  result.ttft_ms = summarize(ttft_);
  result.pool_wait_ms = waits_.all();
  result.wait_by_prompt_ms = waits_.by_prompt();
  result.wait_by_output_ms = waits_.by_output();
}

}  // namespace balanceroute::sim
