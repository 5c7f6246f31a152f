// fleet_state_json.hpp - the state of a fleet as JSON, written by the router and read by `explain`.
//
//   {"fleet": "default", "policy": {"name": "br_0"}, "load_model": {"kind": "tokens"}, "kv_block": 16, "barrier": true,
//    "groups": [{"name": "g0", "workers": [{"url": "http://10.0.0.1:8000", "rank": 0, "slots": 72,
//                "running": [{"request": 17, "prompt": 900, "generated": 40}]}]}],
//    "waiting": [{"request": 18, "prompt": 1200, "waited_ms": 3}]}
//
// Members are declared as settings are (fleet_state_params.cpp): nearly all have defaults, YAML is read as well, and an
// unknown one is refused with the nearest known.
#pragma once

#include <cstddef>
#include <expected>
#include <string>

#include "explain/fleet_state.hpp"

namespace balanceroute::explain {

[[nodiscard]] std::string to_json(const FleetState& state);

// Of the text, in bytes: some 1,000 workers with all their requests.
inline constexpr std::size_t kLargestSnapshot = std::size_t{64} * 1024 * 1024;

// The error names every member that is not as declared, its value and what was expected; `name` is the document's.
[[nodiscard]] std::expected<FleetState, std::string> read_fleet_state(const std::string& text, const std::string& name);

}  // namespace balanceroute::explain
