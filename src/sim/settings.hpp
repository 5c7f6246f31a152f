// settings.hpp - the settings of a run as reports write them down, by the names of the config file.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "policy/policy_params.hpp"
#include "sim/simulate_params.hpp"

namespace balanceroute::sim {

// All that a run of this policy is set to, but for what runs differ in (workers, load, seed).
[[nodiscard]] nlohmann::ordered_json settings_of(SimulateParams params, const PolicyParams& policy);

// A policy's own, its predictor among them, but for its name.
[[nodiscard]] nlohmann::ordered_json settings_of(PolicyParams policy);

}  // namespace balanceroute::sim
