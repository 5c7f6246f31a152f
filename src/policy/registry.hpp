// registry.hpp - all policies, by name.
#pragma once

#include <expected>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "policy/policy.hpp"
#include "policy/policy_params.hpp"

namespace balanceroute {

[[nodiscard]] std::span<const std::string_view> policy_names();

// The policy that `params` names, or a message about a setting outside its range.
[[nodiscard]] std::expected<std::unique_ptr<Policy>, std::string> make_policy(const PolicyParams& params);

}  // namespace balanceroute
