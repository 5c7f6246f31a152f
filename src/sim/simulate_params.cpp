#include "sim/simulate_params.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "policy/registry.hpp"

namespace balanceroute::sim {
namespace {

// A slot costs about 200 bytes a run.
constexpr std::int64_t kMostSlots = std::int64_t{1} << 24;

}  // namespace

void SimulateParams::visit_params(ParamVisitor& visitor) {
  visitor.text(
      {.name = "trace", .doc = "File of recorded requests: CSV or JSON lines, gzip or plain.", .required = true},
      trace);
  visitor.choices({"policy", "Routing policies to compare."}, policies, policy_names());
  visitor.integers({"workers", "Decode workers of a group."}, workers, {1, 65'536});
  visitor.reals({"load", "Rate of arrivals over what perfectly balanced, always full workers finish."}, loads,
                {0.001, 100});
  visitor.integers({"seed", "Seeds of all that is drawn; policies share what one draws."}, seeds,
                   {0, std::numeric_limits<std::int64_t>::max()});
  visit_settings(visitor);
  visitor.flag({"timings", "Report how long runs took; output then differs from call to call."}, timings);
  visitor.text({"json", "File to write the results to."}, json);
}

void SimulateParams::visit_settings(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kArrivals{"poisson", "trace"};
  visitor.integer({"groups", "Groups of workers; each steps on its own."}, groups, {1, 4'096});
  visitor.integer({"slots", "Sequences that a worker runs at once."}, slots, {1, 65'536});
  visitor.integer({"repeat", "Times the trace is played; if more than once, each time in another drawn order."}, repeat,
                  {1, 1'000'000});
  visitor.flag({"warm_start", "Begin with the running requests of a fleet that has long been at work."}, warm_start);
  visitor.choice({"arrivals", "When requests come: a Poisson process, or the trace's own times scaled to the load."},
                 arrivals, kArrivals);
  visitor.integer({"min_output", "Leave out requests with fewer output tokens."}, min_output, {1, kMaxTokens.count()});
  visitor.integer_or_auto({"limit", "Read no more good rows than this; auto is all."}, limit, kAll,
                          {1, std::numeric_limits<std::int64_t>::max()});
  visitor.flag({"skip_bad_rows", "Leave out and count bad rows of the trace instead of refusing it."}, skip_bad_rows);
  step_time.visit_params(visitor);
  policy_settings.visit_settings(visitor);
}

std::expected<void, std::string> validate(const SimulateParams& params) {
  const std::int64_t most = std::ranges::max(params.workers);
  if (most * params.groups * params.slots > kMostSlots) {
    return std::unexpected("--workers " + std::to_string(most) + " * --groups " + std::to_string(params.groups) +
                           " * --slots " + std::to_string(params.slots) + ": expected at most " +
                           std::to_string(kMostSlots) + " slots in all");
  }
  if (params.step_time.fixed_ms == 0 && params.step_time.per_token_ms == 0) {
    return std::unexpected("--fixed-ms = 0 and --per-token-ms = 0: expected a step to take some time");
  }
  for (const std::string& name : params.policies) {
    PolicyParams policy = params.policy_settings;
    policy.name = name;
    if (auto valid = balanceroute::validate(policy, "--"); !valid) return valid;
    for (const std::int64_t workers : params.workers) {
      auto fits = validate_for_group(policy, "of --workers " + std::to_string(workers),
                                     static_cast<std::size_t>(workers), true);
      if (!fits) return fits;
    }
  }
  return {};
}

}  // namespace balanceroute::sim
