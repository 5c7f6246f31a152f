// live_view.hpp - the state of the router as a dashboard shows it, in JSON whose changes are small.
//
// What many workers have and every step changes stands in columns, one number a worker, in the order of the group's
// `workers`; what seldom changes stands in an object by worker id. Units are in the names. Leaves out how it travels:
// live_feed.hpp.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "proxy/dispatcher.hpp"
#include "proxy/generation.hpp"
#include "proxy/live_history.hpp"

namespace balanceroute::proxy {

// One fleet at one moment, taken on the deciding thread.
struct FleetLook {
  FleetSnapshot state;
  std::vector<DecisionRecord> decisions;  // since the look before
  std::vector<Tokens> kv_capacity;        // of a worker, by GroupId; a reload may change the settings later
};

// `after`: the serial of the last decision that is known. While somebody watches, decisions come with runners-up.
FleetLook look_at(Fleet& fleet, std::uint64_t after, bool watched);

nlohmann::json live_view(const ServiceContext& service, const std::vector<FleetLook>& looks, bool draining,
                         const telemetry::RecentTimes& recent);

// The decisions of a look, oldest first; times in seconds since `start`.
nlohmann::json decisions_json(const FleetLook& look, net::TimePoint start);

// What the history keeps of it: "FLEET/GROUP/figure", and "FLEET/GROUP/load/ID" in groups small enough for a line each.
LiveHistory::Row history_row(const ServiceContext& service, const std::vector<FleetLook>& looks);

}  // namespace balanceroute::proxy
