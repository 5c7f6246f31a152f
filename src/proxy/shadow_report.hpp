// shadow_report.hpp - what a fleet's shadow says, as others are told.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "policy/shadow/step_shadow.hpp"
#include "policy/shadow/world_shadow.hpp"

namespace balanceroute::proxy {

struct ShadowReport {
  std::string policy;
  std::string stopped;               // why it is asked no more; empty while it is
  std::optional<StepRegret> step{};  // none: it has a world of its own
  struct Group {
    WorldTotals here;
    WorldTotals there;
    Tokens imbalance;
  };
  std::vector<Group> world{};  // by GroupId
  std::size_t waiting = 0;     // there
  std::uint64_t left_out = 0;
};

}  // namespace balanceroute::proxy
