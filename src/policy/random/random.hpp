// random.hpp - binds a request to any worker, each with the same chance.
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// RandomWorker knows nothing of load or size: what any other policy must beat.
class RandomWorker final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "random";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
};

}  // namespace balanceroute
