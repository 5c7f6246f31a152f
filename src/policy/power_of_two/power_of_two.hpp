// power_of_two.hpp - binds a request to the better of two workers drawn by lot.
//
// Source: Mitzenmacher, "The power of two choices in randomized load balancing" (2001).
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// PowerOfTwo compares the sequences per slot, running and queued, of two different workers.
class PowerOfTwo final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "power_of_two";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
};

}  // namespace balanceroute
