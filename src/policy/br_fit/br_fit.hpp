// br_fit.hpp - the policy br_fit: loads fitted to the group's mean, with an eye on how they will change.
//
// It never sees how long an answer will be; it learns how long answers are from those that end.
#pragma once

#include "policy/br_fit/fit_round.hpp"
#include "policy/br_fit/outlook.hpp"
#include "policy/br_fit/params.hpp"
#include "policy/br_fit/traffic_sample.hpp"
#include "policy/policy.hpp"

namespace balanceroute {

class BrFit final : public PooledPolicy {
 public:
  static constexpr std::string_view kName = "br_fit";

  explicit BrFit(const BrFitParams& params);
  BrFit(const BrFit&) = delete;  // a round refers to what is learned
  BrFit& operator=(const BrFit&) = delete;

  [[nodiscard]] std::string_view name() const override { return kName; }
  void decide(const RoundInput& input, Random& random, std::vector<Choice>& choices) override;
  // The cost function of a round, looks ahead included, for a candidate that waits alone.
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;

  void learned(const Candidate& candidate, Tokens generated, LeaseEnd how) override;
  void arrived(const Candidate& candidate) override;
  void withdrawn(RequestId request) override;
  void admitted(const Request& request, GroupId group, WorkerId worker) override;
  void aged(RequestId request, Tokens generated) override;
  void narrowed(RequestId request, Tokens generated) override;
  void left(RequestId request, Tokens generated, LeaseEnd how) override;
  void stepped(GroupId group, Steps steps) override;

 private:
  Outlook outlook_;
  PromptSample prompts_;
  MeanAge ages_;
  FitRound round_;
  mutable FitRound scorer_;  // its scratch only
};

}  // namespace balanceroute
