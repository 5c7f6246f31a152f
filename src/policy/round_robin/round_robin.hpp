// round_robin.hpp - binds requests to the workers in turn.
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// RoundRobin goes round all eligible workers of the fleet in WorkerId order.
class RoundRobin final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "round_robin";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;

 private:
  // Workers from the one whose turn it is; ids wrap around behind the last of the fleet.
  [[nodiscard]] std::uint32_t turns_until(const FleetView& fleet, WorkerId worker) const;

  std::uint32_t next_ = 0;  // the id whose turn it is
};

}  // namespace balanceroute
