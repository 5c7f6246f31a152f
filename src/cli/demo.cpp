#include "cli/demo.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "cli/bundled_trace.hpp"
#include "cli/demo_engines.hpp"
#include "cli/demo_forecast.hpp"
#include "core/random.hpp"
#include "emulator/emulator.hpp"
#include "net/clock.hpp"
#include "net/server.hpp"
#include "policy/registry.hpp"
#include "proxy/service.hpp"
#include "replay/replay.hpp"
#include "telemetry/log.hpp"
#include "trace/arrivals.hpp"
#include "trace/reader.hpp"
#include "trace/statistics.hpp"

namespace balanceroute::cli {

namespace {

// Percent of the requests after which the engines measure: until then there is no pool to choose from, and most running
// requests were placed without one.
constexpr std::size_t kSettlingShare = 35;
// How long answers may run on after the last request, as a share of the time before: the longest would go on for half a
// minute without adding to what is measured.
constexpr double kDrainShare = 0.1;

constexpr std::string_view kPrefillDialect = "vllm_nixl";

emulator::EmulatorParams emulator_params(const DemoParams& params, const DemoSetup& setup) {
  emulator::EmulatorParams emulated;
  emulated.ranks = params.workers;
  emulated.slots = params.slots;
  emulated.step_time = {.fixed_ms = params.fixed_ms, .per_token_ms = params.per_token_ms};
  emulated.dialect = setup.dialect;
  if (setup.has_prefill()) {
    emulated.prefill_instances = params.prefill_instances;
    emulated.prefill_time = kDemoPrefillTime;
    emulated.transfer_time = kDemoTransferTime;
  }
  return emulated;
}

std::string loopback(std::uint16_t port) {
  return "http://127.0.0.1:" + std::to_string(port);
}

proxy::ServeParams router_params(const DemoParams& params, const DemoSetup& setup, const emulator::Emulator& engines) {
  proxy::ServeParams serve;
  serve.listen = "127.0.0.1:0";
  serve.admin.listen = "127.0.0.1:" + std::to_string(params.admin_port);
  proxy::FleetParams fleet;
  fleet.dialect = setup.dialect;
  fleet.policy.name = setup.policy;
  proxy::GroupParams group{.name = "demo", .slots = params.slots, .workers = {}};
  for (const std::uint16_t port : engines.ports().front()) group.workers.push_back({.url = loopback(port)});
  for (const std::uint16_t port : engines.prefill_ports()) fleet.prefill.instances.push_back({.url = loopback(port)});
  fleet.groups.push_back(std::move(group));
  serve.fleets.push_back(std::move(fleet));
  return serve;
}

// As much of the trace as arrives in the asked time, as fast as the asked load wants it. The lengths are dealt in a
// drawn order first: half a minute of the trace in a row is not like the whole.
void pace(trace::Trace& trace, const DemoParams& params) {
  const trace::FleetShape fleet{.workers = params.workers,
                                .slots = params.slots,
                                .fixed_ms = params.fixed_ms,
                                .per_token_ms = params.per_token_ms};
  const double wanted = params.load * trace::capacity_per_second(trace::length_statistics(trace.requests), fleet);
  const double speed = wanted / trace::arrival_rate(trace.requests);
  const auto count =
      std::clamp<std::size_t>(static_cast<std::size_t>(wanted * params.seconds), 1, trace.requests.size());
  Random random{static_cast<std::uint64_t>(params.seed)};
  trace.requests = trace::shuffled(std::move(trace.requests), random);
  trace.requests.resize(count);
  trace.requests = trace::at_speed(std::move(trace.requests), speed);
}

EngineMeasures engine_measures(const std::string& stats, std::chrono::duration<double> window) {
  const auto json = nlohmann::json::parse(stats);
  return {.barrier_idle_fraction = json.at("barrier_idle_fraction"),
          .load_idle_fraction = json.at("load_idle_fraction"),
          .spread_mean_tokens = json.at("spread_mean_tokens"),
          .late_steps_fraction = json.at("late_steps_fraction"),
          .steps = json.at("steps"),
          .tokens_per_s = json.at("tokens").get<double>() / window.count()};
}

// The number of requests after which the engines measure.
std::size_t settled_after(const trace::Trace& trace) {
  return std::max<std::size_t>(trace.requests.size() * kSettlingShare / 100, 1);
}

// A free admin port that was found is kept for the runs to come, so that a browser stays where it is.
std::expected<DemoRun, std::string> run_one(DemoParams& params, const DemoSetup& setup, const trace::Trace& trace,
                                            const OnRun& on_run) {
  const net::SteadyClock clock;
  emulator::Emulator engines{emulator_params(params, setup), clock};
  if (const auto started = engines.start(); !started) return std::unexpected(started.error());
  auto router = proxy::Service::start(router_params(params, setup, engines), telemetry::make_logger("demo", "warn"));
  if (!router) return std::unexpected(router.error());
  params.admin_port = (*router)->admin_port();
  on_run(setup, loopback((*router)->admin_port()) + "/");

  replay::ReplayParams client;
  client.url = loopback((*router)->client_port());
  client.warm_requests = params.workers * params.slots;
  client.length_member = "emulator";
  client.retries = 0;
  client.drain_s = kDrainShare * params.seconds;
  client.seed = params.seed;

  DemoRun run{.setup = setup};
  net::TimePoint began{};
  replay::ReplayHooks hooks;
  const std::size_t settled = settled_after(trace);
  hooks.request_sent = [&](std::size_t sent) {
    if (sent != settled) return;
    engines.reset_measures();
    began = clock.now();
  };
  hooks.trace_sent = [&] { run.engines = engine_measures(engines.stats_json(), clock.now() - began); };
  auto result = replay::Replay{client, clock}.run(trace, hooks);
  if (!result) return std::unexpected(result.error());
  run.clients = std::move(*result);
  run.forecast = forecast(params, setup, trace, settled - 1);
  return run;
}

std::vector<DemoSetup> setups_of(const DemoParams& params) {
  std::vector<DemoSetup> setups;
  for (const std::string& policy : params.policies) setups.push_back({"aggregated", policy});
  if (params.prefill_instances == 0) return setups;
  for (const std::string& policy : params.prefill_policies) setups.push_back({std::string{kPrefillDialect}, policy});
  return setups;
}

}  // namespace

void DemoParams::visit_params(ParamVisitor& visitor) {
  visitor.integer({"workers", "Decode workers of the emulated group."}, workers, {2, 64});
  visitor.integer({"slots", "Sequences that one worker decodes at once."}, slots, {1, 256});
  visitor.real({"load", "Arrivals as a share of what a perfectly balanced fleet finishes."}, load, {0.05, 10});
  visitor.real({"seconds", "How long requests arrive, for each policy."}, seconds, {1, 3600});
  visitor.real({"fixed_ms", "Part of a decode step that does not depend on load."}, fixed_ms, {0.1, 60'000});
  visitor.real({"per_token_ms", "Time a decode step takes for each token its most loaded worker reads."}, per_token_ms,
               {0, 1'000});
  visitor.choices({"policies", "Policies that are compared, by default those that the documents tell of."}, policies,
                  policy_names());
  visitor.integer(
      {"prefill_instances", "Prefill engines of the fleet that has them beside its decode workers; 0: no such runs."},
      prefill_instances, {0, 64});
  visitor.choices({"prefill_policies", "Policies that are compared on that fleet."}, prefill_policies, policy_names());
  visitor.integer({"seed", "Seed of the order of requests and of those that run when the measurement begins."}, seed,
                  {0, 1'000'000'000});
  visitor.integer(
      {"admin_port", "Port of the router's admin listener, where the dashboard is; 0 takes a free one for all runs."},
      admin_port, {0, 65'535});
  visitor.text({"json", "File for the figures as JSON."}, json);
  visitor.text({"html", "File for the figures as a page."}, html);
}

std::expected<std::vector<DemoRun>, std::string> run_demo(DemoParams params, const OnRun& on_run) {
  net::raise_descriptor_limit();
  auto trace = trace::parse_trace(bundled_trace(), std::string{kBundledTraceName});
  if (!trace) return std::unexpected(trace.error());
  pace(*trace, params);
  std::vector<DemoRun> runs;
  for (const DemoSetup& setup : setups_of(params)) {
    auto run = run_one(params, setup, *trace, on_run);
    if (!run) return std::unexpected(setup.policy + ", " + setup.dialect + ": " + run.error());
    runs.push_back(std::move(*run));
  }
  return runs;
}

}  // namespace balanceroute::cli
