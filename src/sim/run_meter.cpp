#include "sim/run_meter.hpp"

#include <algorithm>
#include <cmath>

#include "sim/power_model.hpp"

namespace balanceroute::sim {
namespace {

constexpr double kStationaryWithin = 0.05;

}  // namespace

void RunMeter::step(const engine::StepLoads& loads, Nanoseconds duration, std::size_t preempted) {
  const double time = seconds(duration);
  preempted_ += static_cast<std::int64_t>(preempted);
  loads_.record(loads.loads);
  stepping_seconds_ += time;
  halves_[half_].seconds += time;
  halves_[half_].active_seconds += static_cast<double>(loads.active) * time;
  tokens_ += loads.active;
  joule_ += group_watts(loads.loads, loads.envelope) * time;
}

void RunMeter::idle(Nanoseconds duration) {
  halves_[half_].seconds += seconds(duration);
  joule_ += worker_watts(0) * static_cast<double>(fleet_.workers) * seconds(duration);
}

void RunMeter::admitted(Nanoseconds waited, bool forced) {
  waits_.push_back(milliseconds(waited));
  forced_ += forced ? 1 : 0;
}

void RunMeter::finished(Nanoseconds since_first_token, Tokens after_first) {
  if (after_first <= Tokens{0}) return;
  tpot_.push_back(milliseconds(since_first_token) / static_cast<double>(after_first.count()));
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
  result.barrier_idle_fraction = loads_.barrier_idle_fraction(fleet_.step_time);
  const double saved_seconds = stepping_seconds_ * result.barrier_idle_fraction / groups;
  if (elapsed > 0) result.throughput_tokens_per_s = tokens / elapsed;
  if (elapsed > saved_seconds) result.bound_throughput_tokens_per_s = tokens / (elapsed - saved_seconds);
  if (elapsed > 0) result.bound_share = (elapsed - saved_seconds) / elapsed;
  result.step_ms_mean = stepping_seconds_ * 1e3 / static_cast<double>(loads_.steps());
  result.tpot_ms = summarize(tpot_);
  result.ttft_ms = summarize(ttft_);
  result.pool_wait_ms = summarize(waits_);
  if (elapsed > 0) result.active_mean = (halves_[0].active_seconds + halves_[1].active_seconds) / elapsed;
  result.busy_fraction = result.active_mean / (static_cast<double>(fleet_.all_workers()) * fleet_.slots);
  result.forced_admissions = forced_;
  result.preemptions = preempted_;
  result.energy_joule_per_token = joule_ / tokens;
  return result;
}

}  // namespace balanceroute::sim
