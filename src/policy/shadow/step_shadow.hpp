// step_shadow.hpp - what another policy would have done in each round, on the very state that the first one saw.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "core/group_view.hpp"
#include "core/pool.hpp"
#include "core/random.hpp"
#include "policy/policy.hpp"
#include "policy/shadow/shadow.hpp"

namespace balanceroute {

// What a shadow's rounds have come to so far.
struct StepRegret {
  std::uint64_t rounds = 0;  // in which either policy placed something
  std::uint64_t worse = 0;   // after which the group was less even than the shadow's choice would have left it
  Tokens regret{0};  // sum of imbalance after the policy's choice less that after the shadow's; below zero where
                     // the policy did better
};

// StepShadow asks another policy what it would do, and does nothing of it.
//   Regret   of one step: both begin from the same loads in every round, so it tells which policy is greedier, not
//            which is better in the long run; world_shadow.hpp tells that.
//   Draws    from a generator of its own, so that the policy that decides is not disturbed.
//   Cost     a round of the other policy. No allocation once warm.
//   Threads  as its Router.
class StepShadow final : public Shadow {
 public:
  StepShadow(std::unique_ptr<Policy> policy, std::uint64_t seed, ShadowLimits limits = {})
      : Shadow{std::move(limits)}, policy_{std::move(policy)}, random_{seed} {}

  [[nodiscard]] const StepRegret& regret() const { return regret_; }
  [[nodiscard]] std::optional<WorkerId> choice(RequestId request) const override;

  // Its policy hears all that the deciding one hears.
  template <class Tell>
  void hear(Tell&& tell) {
    guard_.run([&] { std::forward<Tell>(tell)(*policy_); });
  }
  // A round begins, of one group or of several.
  void begin_round() { planned_.clear(); }
  // Before the policy decides for the group: what waits for it, in the order of turns.
  void before(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet);
  // The same group after that.
  void after(const GroupView& group);

 private:
  void plan(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet);
  void plan_round(const GroupView& group, std::span<const Candidate> waiting, std::span<const GroupView> groups);
  void plan_bindings(const GroupView& group, std::span<const Candidate> waiting, const FleetView& fleet);
  void place(const GroupView& group, std::size_t worker, const Candidate& candidate);

  std::unique_ptr<Policy> policy_;
  Random random_;
  StepRegret regret_;
  std::vector<std::pair<RequestId, WorkerId>> planned_;  // in this round
  // Of the group, if the shadow had decided.
  bool asked_ = false;
  bool places_ = false;
  Tokens before_{0};
  std::vector<Tokens> loads_;
  std::vector<std::int32_t> free_slots_;
  std::vector<Tokens> kv_free_;
  std::vector<Choice> choices_;
  std::vector<Queued> queued_;
};

}  // namespace balanceroute
