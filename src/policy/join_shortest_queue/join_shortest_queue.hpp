// join_shortest_queue.hpp - binds a request to the worker with the fewest sequences per slot, running and queued.
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// JoinShortestQueue balances counts and is blind to sizes: the usual choice of routers, and the baseline here.
class JoinShortestQueue final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "join_shortest_queue";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
};

}  // namespace balanceroute
