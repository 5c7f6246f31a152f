// fleet_state.hpp - one fleet at one moment, as data: what its policy decides on, and nothing of how it came about.
//
// Leaves out what a policy has learned (lengths of answers, calibration), the passes of those that wait, and requests
// that are parked until their tenant has room. A router that is made of it decides as the one that it was taken from
// does, as long as its policy learns nothing and nobody is overdue.
#pragma once

#include <chrono>
#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/load_model_params.hpp"
#include "core/params.hpp"
#include "policy/policy_params.hpp"
#include "policy/router.hpp"

namespace balanceroute::explain {

// A request that a worker holds.
struct RunningState {
  static constexpr std::int64_t kUnnamed = -1;

  std::int64_t request = kUnnamed;
  std::int64_t prompt = 0;
  std::int64_t generated = 0;  // by each sequence
  std::int64_t sequences = 1;
  std::int64_t output_limit = kMaxTokens.count();
  bool started = true;

  void visit_params(ParamVisitor& visitor);
};

struct WorkerSnapshot {
  static constexpr std::int64_t kUnlimited = -1;

  std::string url;
  std::int64_t rank = 0;
  std::int64_t slots = 0;
  std::int64_t slots_ahead = 0;
  std::int64_t kv_space = kUnlimited;
  bool takes_requests = true;
  std::vector<RunningState> running;

  void visit_params(ParamVisitor& visitor);
};

struct GroupSnapshot {
  std::string name;
  std::vector<WorkerSnapshot> workers;

  void visit_params(ParamVisitor& visitor);
};

struct WaitingState {
  std::int64_t request = RunningState::kUnnamed;
  std::int64_t prompt = 0;
  std::int64_t sequences = 1;
  std::int64_t output_limit = kMaxTokens.count();
  std::int64_t priority = 0;
  double waited_ms = 0;

  void visit_params(ParamVisitor& visitor);
};

// FleetState is everything at one moment.
//   Order  waiting ones in the order of their turns; workers in the order of their ids within their group.
struct FleetState {
  std::string fleet = "default";
  PolicyParams policy;  // its name is that of a policy, or auto
  LoadModelParams load_model;
  std::int64_t kv_block = 1;
  bool barrier = true;
  std::vector<GroupSnapshot> groups;
  std::vector<WaitingState> waiting;

  void visit_params(ParamVisitor& visitor);
};

// `fleet`, which has what the router was made of, with what the router holds at the present moment of its clock.
// Workers that are not at the barrier are left out.
[[nodiscard]] FleetState state_of(const Router& router, std::chrono::nanoseconds now, FleetState fleet);

// FleetModel is a router in that state, with the leases of what runs.
struct FleetModel {
  std::unique_ptr<Router> router;
  std::vector<Lease> leases;                          // they go before the router
  std::vector<RequestId> waiting;                     // by position in FleetState::waiting
  std::vector<std::optional<std::string>> refused{};  // the same: why no worker could ever take it
};

// The error names what cannot be: a policy's setting, a worker that is named twice, more than a worker has room for.
[[nodiscard]] std::expected<FleetModel, std::string> make_fleet(const FleetState& state);

}  // namespace balanceroute::explain
