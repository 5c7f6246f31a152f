// br_0.hpp - the policy BR-0: each admission is the one that lowers the group's imbalance most, now.
//
// Source: BalanceRoute (arXiv 2605.06113), section 4.
#pragma once

#include <cstdint>

#include "core/envelope.hpp"
#include "policy/policy.hpp"
#include "policy/two_stage/two_stage.hpp"

namespace balanceroute {

// F = D - G * (D - margin)+: exactly how much the imbalance of a group of G drops when D joins a worker with that
// margin. Negative when the envelope rises by more than the admission is worth.
[[nodiscard]] constexpr Tokens br_0_score(Tokens size, Tokens margin, std::size_t workers) {
  return size - overflow(size, margin) * static_cast<std::int64_t>(workers);
}

// OneStepScore scores sets on the present loads, raised by the round's own admissions.
class OneStepScore {
 public:
  void begin(const GroupView& group) { envelope_.assign(group.loads); }
  void admit(std::size_t worker, Tokens weight, std::int32_t) { envelope_.raise(worker, weight); }

  // Exact: below 2^53 for 1024 workers and any set of 16 requests.
  [[nodiscard]] double score(std::size_t worker, Tokens weight, std::int32_t) const {
    return static_cast<double>(br_0_score(weight, envelope_.margin(worker), envelope_.workers()).count());
  }
  [[nodiscard]] Tokens peak(std::size_t worker, std::int32_t) const { return envelope_.margin(worker); }
  void expect(std::size_t, std::int32_t, std::size_t) {}
  [[nodiscard]] Tokens load(std::size_t worker) const { return envelope_.load(worker); }
  [[nodiscard]] Tokens margin(std::size_t worker) const { return envelope_.margin(worker); }

 private:
  Envelope envelope_;
};

class Br0 final : public PooledPolicy {
 public:
  static constexpr std::string_view kName = "br_0";

  explicit Br0(const TwoStageSettings& settings) : rounds_{settings} {}

  [[nodiscard]] std::string_view name() const override { return kName; }
  void decide(const RoundInput& input, Random& random, std::vector<Choice>& choices) override;
  [[nodiscard]] double score(const FleetView& fleet, GroupId group, std::size_t worker,
                             const Candidate& candidate) const override;
  [[nodiscard]] std::string_view score_meaning() const override;

 private:
  TwoStage<OneStepScore> rounds_;
};

}  // namespace balanceroute
