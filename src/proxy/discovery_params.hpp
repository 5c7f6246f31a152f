// discovery_params.hpp - where a group finds workers that are not in the configuration.
#pragma once

#include <optional>
#include <string>

#include "core/params.hpp"

namespace balanceroute::proxy {

struct DiscoveryParams {
  std::string source = "static";
  std::string file;
  std::string dns_name;
  double interval_ms = 5'000;

  void visit_params(ParamVisitor& visitor);
  [[nodiscard]] bool looks() const { return source != "static"; }
};

// What is wrong with the settings taken together, or nothing.
std::optional<std::string> problem_of(const DiscoveryParams& params);

}  // namespace balanceroute::proxy
