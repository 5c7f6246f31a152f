// least_tokens.hpp - binds a request to the worker with the least load per slot, running and queued.
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// LeastTokens balances load as it stands at arrival; what waits behind it cannot be chosen from any more.
class LeastTokens final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "least_tokens";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
};

}  // namespace balanceroute
