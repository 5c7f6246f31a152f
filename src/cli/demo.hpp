// demo.hpp - the same real traffic over HTTP through the router into an emulated fleet, once for each policy.
//
// Everything runs in this process on loopback. What a policy cost is what the emulated engines measured, not what the
// router believes; beside it stands what the simulator says of the same requests (demo_forecast.hpp).
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"
#include "replay/replay_result.hpp"

namespace balanceroute::cli {

struct DemoParams {
  std::int64_t workers = 8;
  std::int64_t slots = 16;
  double load = 1.25;
  double seconds = 15;
  double fixed_ms = 9.775;
  double per_token_ms = 4.5e-4;
  std::vector<std::string> policies{"join_shortest_queue", "least_tokens", "br_0", "br_fit"};
  std::int64_t prefill_instances = 2;
  std::vector<std::string> prefill_policies{"join_shortest_queue", "br_fit"};
  std::int64_t seed = 1;
  std::int64_t admin_port = 0;
  std::string json;
  std::string html;

  void visit_params(ParamVisitor& visitor);
};

// What a fleet's engines did from when it had settled to the last request of the trace.
struct EngineMeasures {
  double barrier_idle_fraction = 0;
  double load_idle_fraction = 0;
  double spread_mean_tokens = 0;
  double late_steps_fraction = 0;  // of a live fleet
  std::int64_t steps = 0;
  double tokens_per_s = 0;
};

// The same of simulated fleets that differ in what runs at the beginning.
struct Forecast {
  std::vector<EngineMeasures> starts;
};

// One run: a fleet of engines that do both prefill and decode ("aggregated"), or that have prefill engines beside them
// ("vllm_nixl"), under a policy.
struct DemoSetup {
  std::string dialect;
  std::string policy;

  [[nodiscard]] bool has_prefill() const { return dialect != "aggregated"; }
};

struct DemoRun {
  DemoSetup setup;
  replay::ReplayResult clients{};
  EngineMeasures engines{};
  Forecast forecast{};
};

// Told which run starts, and where its dashboard is: at the same address in all of them.
using OnRun = std::function<void(const DemoSetup&, const std::string& dashboard)>;

// Runs all in turn.
//   Errors  a message when a part cannot start; failed requests are counted in the result instead.
std::expected<std::vector<DemoRun>, std::string> run_demo(DemoParams params, const OnRun& on_run);

std::string demo_json(const std::vector<DemoRun>& runs);
std::string demo_table(const std::vector<DemoRun>& runs);
// Live and simulated figures side by side, and what may explain those that differ by more than a tenth.
std::string demo_comparison(const std::vector<DemoRun>& runs);
std::string demo_html(const DemoParams& params, const std::vector<DemoRun>& runs);

}  // namespace balanceroute::cli
