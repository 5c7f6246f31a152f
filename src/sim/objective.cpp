#include "sim/objective.hpp"

#include <algorithm>
#include <array>

namespace balanceroute::sim {
namespace {

constexpr std::string_view kAuto = "auto";

constexpr std::array kObjectives{
    Objective{"throughput", "throughput, output tokens/s", true,
              [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    Objective{"step_ms", "mean step, ms", false, [](const RunResult& r) { return r.step_ms_mean; }},
    Objective{"tpot_mean_ms", "mean TPOT, ms", false, [](const RunResult& r) { return r.tpot_ms.mean; }},
    Objective{"tpot_p95_ms", "P95 of TPOT, ms", false, [](const RunResult& r) { return r.tpot_ms.p95; }},
    Objective{"wait_p99_ms", "P99 of waits, ms", false, [](const RunResult& r) { return r.pool_wait_ms.p99; }},
    Objective{"spread_tokens", "mean spread, tokens", false, [](const RunResult& r) { return r.spread_mean_tokens; }},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kObjectives.size() + 1> names{kAuto};
  std::ranges::transform(kObjectives, names.begin() + 1, &Objective::name);
  return names;
}();

}  // namespace

std::span<const std::string_view> objective_names() {
  return kNames;
}

const Objective& objective_of(std::string_view name, double load) {
  // Above saturation all slots are busy and throughput is what differs; below it throughput is the arrivals'.
  if (name == kAuto) name = load >= 1 ? "throughput" : "step_ms";
  return *std::ranges::find(kObjectives, name, &Objective::name);
}

}  // namespace balanceroute::sim
