// br_h.hpp - the policy BR-H: each admission is the one that lowers the imbalance most, now and over the coming steps.
//
// Source: BalanceRoute (arXiv 2605.06113), section 4.
#pragma once

#include <memory>
#include <optional>

#include "policy/br_h/horizon_score.hpp"
#include "policy/br_h/projection.hpp"
#include "policy/policy.hpp"
#include "policy/two_stage/two_stage.hpp"

namespace balanceroute {

// BrH runs two-stage rounds on projected loads. With horizon 0 it looks at nothing ahead and decides as BR-0.
class BrH final : public PooledPolicy {
 public:
  static constexpr std::string_view kName = "br_h";

  BrH(const TwoStageSettings& rounds, const HorizonWeights& weights, const ProjectionSettings& projection,
      std::unique_ptr<Predictor> predictor, const LoadModel& model = {});
  BrH(const BrH&) = delete;  // rounds refer to the projection
  BrH& operator=(const BrH&) = delete;

  [[nodiscard]] std::string_view name() const override { return kName; }
  void decide(const RoundInput& input, Random& random, std::vector<Choice>& choices) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;
  [[nodiscard]] std::optional<PredictionReport> prediction_report() const override;

  void learned(const Candidate& candidate, Tokens generated, LeaseEnd how) override;
  void admitted(const Request& request, GroupId group, WorkerId worker) override;
  void aged(RequestId request, Tokens generated) override;
  void narrowed(RequestId request, Tokens generated) override;
  void left(RequestId request, Tokens generated, LeaseEnd how) override;
  void stepped(GroupId group, Steps steps) override;

 private:
  [[nodiscard]] const Projection* projection() const { return projection_ ? &*projection_ : nullptr; }

  std::optional<Projection> projection_;  // none at horizon 0
  TwoStage<HorizonScore> rounds_;
  mutable HorizonScore explained_;  // scratch of score()
};

}  // namespace balanceroute
