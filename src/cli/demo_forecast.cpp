#include "cli/demo_forecast.hpp"

#include <chrono>

#include "cli/demo_engines.hpp"
#include "core/random.hpp"
#include "policy/registry.hpp"
#include "proxy/serve_params.hpp"
#include "sim/simulation.hpp"
#include "stats/imbalance_meter.hpp"
#include "trace/stationary_law.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::cli {
namespace {

constexpr std::uint64_t kStarts = 20;

sim::Fleet fleet_of(const DemoParams& params, const DemoSetup& setup) {
  sim::Fleet fleet;
  fleet.workers = static_cast<std::size_t>(params.workers);
  fleet.slots = static_cast<std::int32_t>(params.slots);
  fleet.step_time = {.fixed_ms = params.fixed_ms, .per_token_ms = params.per_token_ms};
  fleet.admission_delay = {.fixed_ms = proxy::FleetParams{}.round_delay_ms, .per_token_ms = 0};
  if (!setup.has_prefill()) return fleet;
  fleet.prefill = {.instances = static_cast<std::size_t>(params.prefill_instances), .time = kDemoPrefillTime};
  fleet.admission_delay.fixed_ms += kDemoTransferTime.fixed_ms;
  fleet.admission_delay.per_token_ms = kDemoTransferTime.per_token_ms;
  return fleet;
}

EngineMeasures simulated(const sim::Fleet& fleet, std::string_view policy, const trace::Trace& trace, std::size_t first,
                         std::uint64_t seed) {
  PolicyParams chosen;
  chosen.name = policy;
  sim::Simulation simulation{
      fleet, make_policy(chosen).value(),
      sim::RequestStream{
          trace.requests,
          {.arrivals = sim::ArrivalLaw::trace, .rate_per_second = trace::arrival_rate(trace.requests), .seed = seed}},
      seed};
  Random random{mix_bits(seed)};
  simulation.warm_up(trace.requests, trace::StationaryLaw{trace.requests},
                     fleet.all_workers() * static_cast<std::size_t>(fleet.slots), random);
  const auto begin = trace.requests[first].arrival;
  const auto end = trace.requests.back().arrival;
  ImbalanceMeter meter;
  std::int64_t tokens = 0;
  while (const auto step = simulation.step()) {
    if (step->start < begin || step->start >= end) continue;
    meter.record(step->loads.loads);
    tokens += step->loads.active;
  }
  const double seconds = std::chrono::duration<double>{end - begin}.count();
  return {.barrier_idle_fraction = meter.barrier_idle_fraction(fleet.step_time),
          .load_idle_fraction = meter.load_idle_fraction(),
          .spread_mean_tokens = meter.spread_mean(),
          .steps = meter.steps(),
          .tokens_per_s = seconds > 0 ? static_cast<double>(tokens) / seconds : 0};
}

}  // namespace

Forecast forecast(const DemoParams& params, const DemoSetup& setup, const trace::Trace& trace, std::size_t first) {
  const sim::Fleet fleet = fleet_of(params, setup);
  Forecast out;
  for (std::uint64_t start = 0; start < kStarts; ++start) {
    out.starts.push_back(simulated(fleet, setup.policy, trace, first, static_cast<std::uint64_t>(params.seed) + start));
  }
  return out;
}

}  // namespace balanceroute::cli
