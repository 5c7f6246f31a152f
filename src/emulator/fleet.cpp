#include "emulator/fleet.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

namespace balanceroute::emulator {
namespace {

using Json = nlohmann::ordered_json;

struct Now {
  std::int64_t active = 0;
  std::int64_t waiting = 0;
};

Json to_json(const GroupMeasures& measures, const Now& now, StepTime step_time) {
  const auto steps = measures.loads.steps();
  const std::chrono::duration<double, std::milli> lateness = measures.largest_lateness;
  return {
      {"steps", steps},
      {"load_idle_fraction", measures.loads.load_idle_fraction()},
      {"barrier_idle_fraction", measures.loads.barrier_idle_fraction(step_time)},
      {"spread_mean_tokens", measures.loads.spread_mean()},
      {"late_steps_fraction", steps == 0 ? 0.0 : static_cast<double>(measures.late_steps) / static_cast<double>(steps)},
      {"largest_lateness_ms", lateness.count()},
      {"tokens", measures.tokens},
      {"client_closes", measures.client_closes},
      {"active", now.active},
      {"waiting", now.waiting}};
}

}  // namespace

Fleet::Fleet(net::IoThread& thread, const EmulatorParams& params) : thread_{thread} {
  for (std::int64_t i = 0; i < params.groups; ++i) {
    groups_.push_back(std::make_unique<SteppingGroup>(thread, static_cast<std::size_t>(params.ranks), params.slots,
                                                      params.step_time.line()));
  }
}

std::string Fleet::stats_json() const {
  GroupMeasures sum;
  Now now;
  auto groups = Json::array();
  for (const auto& group : groups_) {
    const Now here{group->model().active(), group->model().queued()};
    groups.push_back(to_json(group->measures(), here, group->step_time()));
    sum += group->measures();
    now.active += here.active;
    now.waiting += here.waiting;
  }
  auto stats = to_json(sum, now, groups_.front()->step_time());
  stats["groups"] = std::move(groups);
  return stats.dump();
}

void Fleet::reset_measures() {
  for (const auto& group : groups_) group->reset_measures();
}

}  // namespace balanceroute::emulator
