// member_status.hpp - a member of a fleet as a person inspects it.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "core/ledger.hpp"
#include "proxy/endpoint_health.hpp"
#include "proxy/engine_metrics.hpp"

namespace balanceroute::proxy {

// What probes say of a prefill instance.
struct PrefillStatus {
  HealthState health;
  std::string fault;  // the last one
};

// What is known of a worker beside its books.
struct MemberStatus {
  HealthState health;
  bool on_trial;
  std::uint64_t times_held;
  std::uint64_t rank_rejections;
  bool drain_asked;
  bool removing;                                    // leaves when its last request has
  std::string fault;                                // the last one
  std::optional<RankReading> engine;                // what it said last of itself
  std::int64_t background;                          // sequences of somebody else that are counted
  std::uint64_t disagreements;                      // readings that did not fit the ledger
  std::array<std::uint64_t, kWorkerStates> became;  // how often it came into each state
};

}  // namespace balanceroute::proxy
