// fleet_check.hpp - asks every engine of a configuration what it is, and says what does not fit.
//
// Only reads: health, version, models and metrics. No request is generated, so a fleet that serves can be looked at.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/membership.hpp"
#include "proxy/serve_params.hpp"

namespace balanceroute::proxy {

enum class Verdict : std::uint8_t { good, doubtful, wrong };

[[nodiscard]] std::string_view to_string(Verdict verdict);

// One thing that was found, about one worker or a whole fleet.
struct Finding {
  Verdict verdict;
  std::string where;  // a worker's address, or the name of a group or fleet
  std::string what;
  std::string advice;  // what to do; empty for what is good
};

// What an engine answered.
struct EnginePages {
  std::string unreachable;  // why it could not be asked; else empty
  int health = 0;           // statuses
  std::string version;      // empty if it does not say
  std::vector<std::string> models;
  std::string metrics;  // the page, empty without one
};

// What the pages of a group's workers, in their order, say about the settings; pure.
std::vector<Finding> judge_group(const FleetParams& fleet, const GroupParams& group,
                                 const std::vector<WorkerSpec>& workers, const std::vector<EnginePages>& pages);

// Asks every worker of the configuration, which has passed problems_of(), with its fleet's key and certificates, and
// judges. Blocks; each question takes at most health.timeout_ms.
std::vector<Finding> check_fleets(const ServeParams& params, const LoadedKeys& keys);

}  // namespace balanceroute::proxy
