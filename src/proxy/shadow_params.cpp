#include "proxy/shadow_params.hpp"

#include <array>
#include <string_view>
#include <vector>

#include "policy/registry.hpp"

namespace balanceroute::proxy {

void ShadowParams::visit_params(ParamVisitor& visitor) {
  static constexpr std::array<std::string_view, 2> kModes{"step", "world"};
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all{"none"};
    all.insert(all.end(), policy_names().begin(), policy_names().end());
    return all;
  }();
  visitor.choice(
      {"policy",
       "A policy that is asked what it would do, with the settings of `policy`; nothing of it is done, and it "
       "costs its rounds on the deciding thread."},
      policy, names);
  visitor.choice(
      {"mode",
       "step: in each round it sees what the fleet's policy sees, and the difference in imbalance after that "
       "one step is its regret. world: it has books of its own, with the same arrivals, steps and lengths."},
      mode, kModes);
  visitor.real({"slow_round_ms",
                "A round of it that takes longer is slow; after three within a minute it is asked no more until the "
                "router starts anew."},
               slow_round_ms, {0.001, 60'000});
}

PolicyParams ShadowParams::settings(PolicyParams of_fleet) const {
  of_fleet.name = policy;
  if (policy.starts_with("br_0")) {
    of_fleet.alpha = PolicyParams::kAuto;
    of_fleet.beta = PolicyParams::kAuto;
  }
  return of_fleet;
}

}  // namespace balanceroute::proxy
