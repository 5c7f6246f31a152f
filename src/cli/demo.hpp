// demo.hpp - the same real traffic over HTTP through the router into an emulated fleet, once for each policy.
//
// Everything runs in this process on loopback. What a policy cost is what the emulated engines measured, not what the
// router believes.
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
  double seconds = 22;
  double fixed_ms = 9.775;
  double per_token_ms = 4.5e-4;
  std::int64_t seed = 1;
  std::string json;
  std::string html;

  void visit_params(ParamVisitor& visitor);
};

// What the emulated engines measured from when the fleet had settled to the last request of the trace.
struct EngineMeasures {
  double barrier_idle_fraction = 0;
  double load_idle_fraction = 0;
  double spread_mean_tokens = 0;
  double late_steps_fraction = 0;
  std::int64_t steps = 0;
  double tokens_per_s = 0;
};

struct DemoRun {
  std::string policy;
  replay::ReplayResult clients;
  EngineMeasures engines;
};

// Runs every policy in turn; `on_run` is told the policy that starts.
//   Errors  a message when a part cannot start; failed requests are counted in the result instead.
std::expected<std::vector<DemoRun>, std::string> run_demo(const DemoParams& params,
                                                          const std::function<void(std::string_view)>& on_run);

std::string demo_json(const std::vector<DemoRun>& runs);
std::string demo_table(const std::vector<DemoRun>& runs);
std::string demo_html(const DemoParams& params, const std::vector<DemoRun>& runs);

}  // namespace balanceroute::cli
