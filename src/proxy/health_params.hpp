// health_params.hpp - how the router finds out which workers can be given work.
#pragma once

#include <cstdint>

#include "core/params.hpp"

namespace balanceroute::proxy {

struct HealthParams {
  double interval_ms = 2'000;
  double timeout_ms = 5'000;
  std::int64_t unhealthy_after = 3;
  std::int64_t healthy_after = 2;
  std::int64_t hold_after = 5;
  double hold_ms = 5'000;
  double longest_hold_ms = 60'000;
  std::int64_t trial_requests = 1;
  std::int64_t release_after = 2;
  bool metrics = true;

  void visit_params(ParamVisitor& visitor);
  // Whether workers are asked, or only judged by what becomes of requests.
  [[nodiscard]] bool probes() const { return interval_ms > 0; }
};

}  // namespace balanceroute::proxy
