// shadow_params.hpp - another policy that is asked what it would do.
#pragma once

#include <string>

#include "core/params.hpp"
#include "policy/policy_params.hpp"

namespace balanceroute::proxy {

struct ShadowParams {
  std::string policy = "none";
  std::string mode = "step";
  double slow_round_ms = 5;

  void visit_params(ParamVisitor& visitor);
  [[nodiscard]] bool is_on() const { return policy != "none"; }
  // Whether it keeps a world of its own.
  [[nodiscard]] bool keeps_world() const { return is_on() && mode == "world"; }
  // The fleet's own settings, for that policy.
  [[nodiscard]] PolicyParams settings(PolicyParams of_fleet) const;
};

}  // namespace balanceroute::proxy
