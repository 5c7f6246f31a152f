// environment.hpp - settings in environment variables: `limits.body_bytes` is BALANCEROUTE_LIMITS_BODY_BYTES.
#pragma once

#include <expected>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "config/config_error.hpp"
#include "config/given_settings.hpp"
#include "core/params.hpp"

namespace balanceroute {

// Variables and their values.
using Environment = std::map<std::string, std::string, std::less<>>;

// The variables that are meant for this program, out of texts like "NAME=value" that end with a null, as in `environ`.
[[nodiscard]] Environment own_variables(const char* const* variables);

// `BALANCEROUTE_LIMITS_BODY_BYTES` for `limits.body_bytes`.
[[nodiscard]] std::string variable_name(std::string_view path);

// What the variables give, by path, or all that is wrong with them. Lists cannot be set here. Variables that Kubernetes
// makes for services whose names start with `balanceroute` are passed over. What `params` visits is changed.
[[nodiscard]] std::expected<GivenSettings, ConfigError> visit_environment(
    const Environment& environment, const std::function<void(ParamVisitor&)>& params);

}  // namespace balanceroute
