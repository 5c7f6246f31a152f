// given_settings.hpp - settings given one by one, as text: on the command line, in the environment.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"

namespace balanceroute {

// Texts that are valid for the settings at their paths.
using GivenSettings = std::map<std::string, std::string, std::less<>>;

// Sets what is given.
void apply_given(const GivenSettings& given, const std::function<void(ParamVisitor&)>& params);

// The texts of a list that is given as one: "a,b".
[[nodiscard]] std::vector<std::string> split_at_commas(std::string_view text);

}  // namespace balanceroute
