// world_shadow.hpp - what a fleet would look like if another policy had placed everything since the start.
//
// It hears what a live Router hears, keeps books of its own, and lets each request live there for as many tokens as it
// turns out to have.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/units.hpp"
#include "policy/router.hpp"
#include "policy/router_event.hpp"
#include "policy/shadow/shadow.hpp"

namespace balanceroute {

// Sums over the steps of a group: of its envelope, and of its mean load.
struct WorldTotals {
  double envelope = 0;
  double mean_load = 0;

  // The share of the group's reading time that its workers wait for the most loaded one.
  [[nodiscard]] double load_idle_fraction() const { return envelope == 0 ? 0 : (envelope - mean_load) / envelope; }
};

// WorldShadow runs a second Router on the arrivals, steps and lengths of the first.
//   Lengths  a request ends in the shadow's world when it has as many tokens there as it had here at its end; until
//            that is known it runs on. One that is given up here is given up there at the same moment, and one that is
//            on a worker there that restarts or is lost is lost there.
//   Limits   a request starts to grow with the step after its admission there; steps come when they come here, though a
//            more even group would step faster; beyond `kWaiting` that wait there, arrivals are left out and counted.
//   Threads  as its Router's.
class WorldShadow final : public Shadow, public RouterListener {
 public:
  static constexpr std::size_t kWaiting = 100'000;

  WorldShadow(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, RouterSettings settings,
              ShadowLimits limits = {});

  // The router whose events it hears; before the first one.
  void watch(const Router& live) { live_ = &live; }
  void heard(std::chrono::nanoseconds now, const RouterEvent& event) override;
  [[nodiscard]] std::optional<WorkerId> choice(RequestId request) const override;

  [[nodiscard]] const Router& router() const { return router_; }
  // By GroupId, over the same steps.
  [[nodiscard]] const std::vector<WorldTotals>& here() const { return here_; }
  [[nodiscard]] const std::vector<WorldTotals>& there() const { return there_; }
  [[nodiscard]] std::uint64_t left_out() const { return left_out_; }
  // Requests that it keeps in mind.
  [[nodiscard]] std::size_t kept() const { return entries_.size(); }

 private:
  struct Entry {
    Lease lease;
    bool placed = false;           // it has had that lease
    std::optional<Tokens> length;  // once it has ended here
    std::optional<Steps> begun;    // its group's step there from which its tokens count
    GroupId group{};
  };
  struct Group {
    Steps steps{0};
    std::vector<RequestId> fresh;             // admitted, and not yet grown
    std::multimap<Steps, RequestId> endings;  // by step
  };
  class Hearing;

  void submit(const Request& request);
  void adopt(WorkerId worker, const Request& request);
  void finish(RequestId request, Tokens length);
  void give_up(RequestId request);
  void advance(GroupId group, Steps steps);
  Entry& take(RequestId request, Lease lease, WorkerId worker);
  void begin(Group& group, RequestId request);
  void end_by(Group& group);
  void decide();
  void add_to_totals(GroupId group, Steps steps);

  Router router_;
  const Router* live_ = nullptr;
  std::unordered_map<RequestId, Entry> entries_;  // goes before the router
  std::vector<Group> groups_;
  std::vector<WorldTotals> here_;
  std::vector<WorldTotals> there_;
  std::uint64_t left_out_ = 0;
};

}  // namespace balanceroute
