#include "explain/fleet_state_json.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "config/setting_values.hpp"
#include "config/yaml_reader.hpp"

namespace balanceroute::explain {

namespace {

using json = nlohmann::ordered_json;

json running_json(const RunningState& one) {
  json out;
  if (one.request != RunningState::kUnnamed) out["request"] = one.request;
  out.update({{"prompt", one.prompt},
              {"generated", one.generated},
              {"sequences", one.sequences},
              {"output_limit", one.output_limit},
              {"started", one.started}});
  return out;
}

json worker_json(const WorkerSnapshot& worker) {
  json out{{"url", worker.url}, {"rank", worker.rank}, {"slots", worker.slots}, {"slots_ahead", worker.slots_ahead}};
  if (worker.kv_space != WorkerSnapshot::kUnlimited) out["kv_space"] = worker.kv_space;
  out["takes_requests"] = worker.takes_requests;
  out["running"] = json::array();
  for (const RunningState& one : worker.running) out["running"].push_back(running_json(one));
  return out;
}

json group_json(const GroupSnapshot& group) {
  json out{{"name", group.name}, {"workers", json::array()}};
  for (const WorkerSnapshot& worker : group.workers) out["workers"].push_back(worker_json(worker));
  return out;
}

json waiting_json(const WaitingState& one) {
  json out;
  if (one.request != RunningState::kUnnamed) out["request"] = one.request;
  out.update({{"prompt", one.prompt},
              {"sequences", one.sequences},
              {"output_limit", one.output_limit},
              {"priority", one.priority},
              {"waited_ms", one.waited_ms}});
  return out;
}

// `br_fit.window` is a member of the member br_fit.
template <class Params>
json settings_json(const Params& params) {
  json out = json::object();
  for (const auto& [path, value] : values_of(params)) {
    std::string pointer = "/" + path;
    std::ranges::replace(pointer, '.', '/');
    // A number or a truth value is written as one: a quoted one is a text.
    json plain = json::parse(value, nullptr, false);
    out[json::json_pointer{pointer}] = plain.is_number() || plain.is_boolean() ? std::move(plain) : json(value);
  }
  return out;
}

}  // namespace

std::string to_json(const FleetState& state) {
  json out{{"fleet", state.fleet},
           {"policy", settings_json(state.policy)},
           {"load_model", settings_json(state.load_model)},
           {"kv_block", state.kv_block},
           {"barrier", state.barrier},
           {"groups", json::array()},
           {"waiting", json::array()}};
  for (const GroupSnapshot& group : state.groups) out["groups"].push_back(group_json(group));
  for (const WaitingState& one : state.waiting) out["waiting"].push_back(waiting_json(one));
  return out.dump(-1, ' ', false, json::error_handler_t::replace) + "\n";
}

std::expected<FleetState, std::string> read_fleet_state(const std::string& text, const std::string& name) {
  FleetState state;
  if (const auto read = read_yaml(text, name, state, {}, kLargestSnapshot); !read)
    return std::unexpected(read.error().text());
  return state;
}

}  // namespace balanceroute::explain
