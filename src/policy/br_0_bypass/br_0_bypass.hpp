// br_0_bypass.hpp - BR-0 without a pool: binds at prefill completion by the one-step score on virtual load.
//
// Source: BalanceRoute (arXiv 2605.06113), the pool-bypass path. It gives up the choice among waiting requests; in
// return a request's KV cache may move while its worker still decodes for others.
#pragma once

#include "policy/policy.hpp"

namespace balanceroute {

// Br0Bypass scores workers with BR-0's F on virtual load: tokens running, dispatched and queued.
//   Groups   the one of least virtual load per slot; F compares workers of one group only, each group has its own
//            envelope.
//   Slots    a worker that could admit the request at once goes before one where it would queue, in every group.
//   Ties     least virtual load, then lowest position.
//   Cost     O(workers of the fleet).
class Br0Bypass final : public ImmediatePolicy {
 public:
  static constexpr std::string_view kName = "br_0_bypass";

  [[nodiscard]] std::string_view name() const override { return kName; }
  [[nodiscard]] std::optional<WorkerId> bind(const FleetView& fleet, const Candidate& candidate,
                                             Random& random) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
};

}  // namespace balanceroute
