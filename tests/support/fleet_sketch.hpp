// fleet_sketch.hpp - a fleet written down by hand: groups of workers, numbered through, and what is queued at each.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "core/group_view.hpp"
#include "support/group_sketch.hpp"

namespace balanceroute {

struct FleetSketch {
  explicit FleetSketch(std::vector<GroupSketch> sketches) : groups{std::move(sketches)} {
    std::uint32_t next = 0;
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      for (WorkerId& worker : groups[g].workers) worker = WorkerId{next++};
      views.push_back(groups[g].view());
      views.back().group = GroupId{g};
    }
    queued.resize(next);
  }
  [[nodiscard]] FleetView view() const { return {.groups = views, .queued = queued}; }

  std::vector<GroupSketch> groups;
  std::vector<GroupView> views;
  std::vector<Queued> queued;
};

}  // namespace balanceroute
