// Immediate policies against the slow obvious choice: every worker of the fleet written down with all that counts.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "core/envelope.hpp"
#include "core/random.hpp"
#include "policy/registry.hpp"
#include "support/fleet_sketch.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

FleetSketch draw_fleet(Random& draw) {
  std::vector<GroupSketch> groups(1 + draw.below(3));
  const std::uint64_t largest = draw.below(2) == 0 ? 6 : 300'000;
  for (GroupSketch& group : groups) {
    for (std::uint64_t workers = draw.below(6); workers > 0; --workers) {
      group.add({.load = static_cast<std::int64_t>(draw.below(largest)),
                 .free_slots = static_cast<std::int32_t>(draw.below(4)),
                 .eligible = draw.below(5) != 0,
                 .sequences = static_cast<std::int32_t>(1 + draw.below(5)),
                 .kv_free = draw.below(4) == 0 ? Tokens{static_cast<std::int64_t>(draw.below(100))} : kUnlimitedKv});
    }
  }
  FleetSketch fleet{std::move(groups)};
  for (Queued& queued : fleet.queued) {
    if (draw.below(2) == 0) continue;
    queued = {.load = Tokens{static_cast<std::int64_t>(draw.below(largest))},
              .kv = Tokens{static_cast<std::int64_t>(draw.below(50))},
              .sequences = static_cast<std::int64_t>(draw.below(3))};
  }
  return fleet;
}

Candidate draw_candidate(Random& draw) {
  const auto sequences = static_cast<std::int32_t>(1 + draw.below(3));
  const Tokens prompt{static_cast<std::int64_t>(draw.below(2) == 0 ? draw.below(6) : draw.below(200'000))};
  return {.request = {.id = RequestId{1}, .prompt = prompt, .sequences = sequences},
          .weight = prompt * sequences,
          .kv = Tokens{static_cast<std::int64_t>(draw.below(100))}};
}

// One worker that can hold the candidate.
struct Able {
  std::uint32_t worker;
  std::uint32_t group;
  bool room_now;
  std::int64_t sequences;  // running and queued
  std::int64_t load;
  std::int64_t slots;
  std::int64_t drop;  // of its group's imbalance by the candidate
  std::int64_t group_load;
  std::int64_t group_slots;
};

std::vector<Able> all_able(const FleetSketch& fleet, const Candidate& candidate) {
  std::vector<Able> all;
  for (const GroupView& group : fleet.views) {
    std::vector<Tokens> loads;
    std::int64_t slots = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      loads.push_back(group.loads[i] + fleet.queued[group.workers[i].value()].load);
      slots += group.slots[i];
    }
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (group.eligible[i] == 0 || group.slots[i] < candidate.request.sequences) continue;
      const Queued& queued = fleet.queued[group.workers[i].value()];
      std::vector<Tokens> after = loads;
      after[i] += candidate.weight;
      all.push_back({.worker = group.workers[i].value(),
                     .group = group.group.value(),
                     .room_now = group.free_slots[i] - queued.sequences >= candidate.request.sequences &&
                                 group.kv_free[i] >= queued.kv + candidate.kv,
                     .sequences = group.sequences[i] + queued.sequences,
                     .load = loads[i].count(),
                     .slots = group.slots[i],
                     .drop = (imbalance(loads) - imbalance(after)).count(),
                     .group_load = total_load(loads).count(),
                     .group_slots = slots});
    }
  }
  return all;
}

std::optional<std::uint32_t> bind(const std::string& policy, const FleetSketch& fleet, const Candidate& candidate,
                                  Random& draw) {
  const auto made = make_policy({.name = policy}).value();
  const auto worker = static_cast<ImmediatePolicy&>(*made).bind(fleet.view(), candidate, draw);
  if (!worker) return std::nullopt;
  return worker->value();
}

// Law: br_0_bypass takes, with room at once before without, the group of least load per slot, then the largest drop of
// its imbalance, then the least load, then the first.
TEST(ImmediateProperty, BypassTakesTheLargestDropOfTheLightestGroup) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const FleetSketch fleet = draw_fleet(draw);
    const Candidate candidate = draw_candidate(draw);
    const std::vector<Able> all = all_able(fleet, candidate);
    const auto best = std::ranges::min_element(all, [](const Able& a, const Able& b) {
      if (a.room_now != b.room_now) return a.room_now;
      const std::int64_t here = a.group_load * b.group_slots;
      const std::int64_t there = b.group_load * a.group_slots;
      return std::tuple{here, a.group, -a.drop, a.load, a.worker} <
             std::tuple{there, b.group, -b.drop, b.load, b.worker};
    });
    const auto bound = bind("br_0_bypass", fleet, candidate, draw);
    require(bound.has_value() == !all.empty());
    if (bound) require(*bound == best->worker);
  });
}

// Law: every immediate policy binds to a worker that can hold the request, if there is one; those that count take one
// with the least of what they count, power_of_two none that is worse than all others.
TEST(ImmediateProperty, CountingPoliciesTakeTheLeast) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const FleetSketch fleet = draw_fleet(draw);
    const Candidate candidate = draw_candidate(draw);
    const std::vector<Able> all = all_able(fleet, candidate);
    const auto fewer = [](const Able& a, const Able& b) { return a.sequences * b.slots < b.sequences * a.slots; };
    const auto lighter = [](const Able& a, const Able& b) { return a.load * b.slots < b.load * a.slots; };
    for (const std::string policy : {"random", "round_robin", "power_of_two", "join_shortest_queue", "least_tokens"}) {
      const auto bound = bind(policy, fleet, candidate, draw);
      require(bound.has_value() == !all.empty());
      if (!bound) continue;
      const auto its = std::ranges::find(all, *bound, &Able::worker);
      require(its != all.end());
      const auto beaten_by = [&](const auto& less) {
        return std::ranges::count_if(all, [&](const Able& other) { return less(other, *its); });
      };
      if (policy == "join_shortest_queue") require(beaten_by(fewer) == 0);
      if (policy == "least_tokens") require(beaten_by(lighter) == 0);
      if (policy == "power_of_two" && all.size() > 1) require(beaten_by(fewer) < std::ssize(all) - 1);
    }
  });
}

}  // namespace
}  // namespace balanceroute
