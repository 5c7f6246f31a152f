// explanation.hpp - what the policy of a fleet thinks of each worker for each request that waits, and what one round
// decides.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <vector>

#include "explain/fleet_state.hpp"

namespace balanceroute::explain {

// A worker as the round sees it, before it decides.
struct ExplainedWorker {
  std::string group;
  std::string url;
  std::int32_t rank;
  bool takes_requests;
  std::int32_t free_slots;
  Tokens load;
  Tokens margin;  // below the group's most loaded worker
};

struct ExplainedRequest {
  std::int64_t request;  // as in the state
  std::int64_t prompt;
  std::int64_t sequences;
  std::vector<double> scores;          // by position in Explanation::workers
  std::optional<std::string> refused;  // why no worker could ever take it
};

// What the round gives a worker, in order.
struct ExplainedAdmission {
  std::size_t request;  // positions in Explanation's lists
  std::size_t worker;
  Stage stage;
  std::int32_t set_size;
  double score;
  Tokens margin;  // just before
  struct RunnerUp {
    std::size_t worker;
    double score;
  };
  std::optional<RunnerUp> runner_up;
};

struct Explanation {
  std::string fleet;
  std::string policy;
  std::string score_meaning;
  bool learns = false;  // its policy learns from what it hears, and has heard nothing here
  std::vector<ExplainedWorker> workers;
  std::vector<ExplainedRequest> requests;
  std::vector<ExplainedAdmission> admissions;
};

// The error is make_fleet()'s.
[[nodiscard]] std::expected<Explanation, std::string> explain(const FleetState& state);

}  // namespace balanceroute::explain
