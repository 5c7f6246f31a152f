#include "emulator/fleet.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::emulator {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMostLate = 0.05;  // share of late steps above which a run says nothing

struct Now {
  std::int64_t active = 0;
  std::int64_t waiting = 0;
};

Json to_json(const GroupMeasures& measures, const Now& now, StepTime step_time) {
  const auto steps = measures.loads.steps();
  const double late = steps == 0 ? 0.0 : static_cast<double>(measures.late_steps) / static_cast<double>(steps);
  const std::chrono::duration<double, std::milli> lateness = measures.largest_lateness;
  return {{"steps", steps},
          {"load_idle_fraction", measures.loads.load_idle_fraction()},
          {"barrier_idle_fraction", measures.loads.barrier_idle_fraction(step_time)},
          {"spread_mean_tokens", measures.loads.spread_mean()},
          {"late_steps_fraction", late},
          {"valid", late <= kMostLate},
          {"largest_lateness_ms", lateness.count()},
          {"tokens", measures.tokens},
          {"client_closes", measures.client_closes},
          {"active", now.active},
          {"waiting", now.waiting}};
}

Json to_json(const KvCounters& counters) {
  return {{"offered", counters.offered},
          {"transferred", counters.transferred},
          {"leases_expired", counters.leases_expired},
          {"abandoned", counters.abandoned},
          {"relay_faults", counters.relay_faults},
          {"transfers_lost", counters.transfers_lost},
          {"local_prompts", counters.local_prompts},
          {"recomputed_prompts", counters.recomputed_prompts}};
}

GroupSettings group_settings(const EmulatorParams& params) {
  return {.ranks = static_cast<std::size_t>(params.ranks),
          .slots = params.slots,
          .step_time = params.step_time.line(),
          .kv_capacity = params.kv_capacity(),
          .kv_block = Tokens{params.block_size},
          .prefill_time = params.prefill_time,
          .recompute_stop = params.recompute_stop,
          .step_log = static_cast<std::size_t>(params.step_log)};
}

net::Duration seconds(double value) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double>{value});
}

double milliseconds(net::Duration duration) {
  return std::chrono::duration<double, std::milli>{duration}.count();
}

}  // namespace

Fleet::Fleet(net::IoThread& thread, const EmulatorParams& params)
    : thread_{thread},
      params_{params},
      tasks_{thread, [](const std::exception_ptr& failure) { std::rethrow_exception(failure); }},
      exchange_{thread, seconds(params.lease_seconds)},
      dialect_{make_dialect(params, thread, tasks_, exchange_)} {
  for (std::int64_t i = 0; i < params.groups; ++i) {
    groups_.push_back(std::make_unique<SteppingGroup>(thread, group_settings(params)));
  }
  for (std::int64_t i = 0; i < params.prefill_instances * params.prefill_ranks; ++i) {
    prefills_.push_back(std::make_unique<PrefillEngine>(thread, params.prefill_time, params.prefill_kv_capacity()));
  }
}

PrefillEngine& Fleet::prefill(std::size_t instance, std::size_t rank) {
  return *prefills_[instance * static_cast<std::size_t>(params_.prefill_ranks) + rank];
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
  stats["kv"] = to_json(exchange_.counters());
  auto faults = Json::object();
  for (std::size_t kind = 0; kind < kFaultNames.size(); ++kind) {
    std::int64_t met = 0;
    for (const auto* reporter : reporters_) met += reporter->faults().met()[kind];
    faults[std::string{kFaultNames[kind]}] = met;
  }
  stats["faults"] = std::move(faults);
  return stats.dump();
}

std::string Fleet::state_json() const {
  std::vector<std::string> ranks;
  for (const auto* reporter : reporters_) reporter->append_state(ranks);
  std::string out = Json{{"holds_nothing", holds_nothing()}, {"kv_offers", exchange_.offers()}}.dump();
  out.pop_back();
  out += ",\"ranks\":[";
  for (std::size_t i = 0; i < ranks.size(); ++i) out += (i == 0 ? "" : ",") + ranks[i];
  return out + "]}";
}

bool Fleet::holds_nothing() const {
  const bool busy = std::ranges::any_of(reporters_, [](const auto* reporter) { return reporter->sequences() > 0; });
  const bool prefills = std::ranges::any_of(prefills_, [](const auto& engine) { return engine->live_prompts() > 0; });
  return !busy && !prefills && exchange_.offers() == 0;
}

std::string Fleet::steps_json(std::size_t index, std::size_t most) const {
  const auto& steps = groups_[index]->steps();
  auto list = Json::array();
  for (std::size_t i = steps.size() - std::min(most, steps.size()); i < steps.size(); ++i) {
    const StepRecord& step = steps[i];
    auto loads = Json::array();
    for (const Tokens load : step.loads) loads.push_back(load.count());
    list.push_back({{"step", step.number},
                    {"start_ms", milliseconds(step.start.time_since_epoch())},
                    {"length_ms", milliseconds(step.length)},
                    {"lateness_ms", milliseconds(step.lateness)},
                    {"loads", std::move(loads)},
                    {"active", step.active}});
  }
  return Json{{"group", index}, {"steps", std::move(list)}}.dump();
}

void Fleet::reset_measures() {
  for (const auto& group : groups_) group->reset_measures();
  exchange_.counters() = {};
}

}  // namespace balanceroute::emulator
