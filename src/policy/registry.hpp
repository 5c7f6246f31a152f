// registry.hpp - all policies, by name.
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "core/load_model.hpp"
#include "policy/policy.hpp"
#include "policy/policy_params.hpp"
#include "predict/predictor.hpp"

namespace balanceroute {

[[nodiscard]] std::span<const std::string_view> policy_names();

// PolicyContext is what a policy must know of where it is used.
struct PolicyContext {
  LoadModel load_model{};                 // the one that the ledger counts with
  const LengthOracle* lengths = nullptr;  // for the predictor `oracle`; outlives the policy. None: nobody knows
};

// The policy that `params` names, or a message about a setting that cannot be. `auto` names none: see chosen_for().
[[nodiscard]] std::expected<std::unique_ptr<Policy>, std::string> make_policy(const PolicyParams& params,
                                                                              const PolicyContext& context = {});

}  // namespace balanceroute
