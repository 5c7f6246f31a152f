// setting_values.hpp - settings as a flat table, and what two of them do not share.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "core/params.hpp"

namespace balanceroute {

// The value of each setting as text, by its path, like `fleets[0].policy.r_max`.
using SettingValues = std::map<std::string, std::string>;

enum class Secrets : std::uint8_t { hidden, shown };  // hidden: only whether one is set

[[nodiscard]] SettingValues visit_values(const std::function<void(ParamVisitor&)>& params, Secrets secrets);

template <class Params>
[[nodiscard]] SettingValues values_of(Params params, Secrets secrets = Secrets::hidden) {
  return visit_values([&params](ParamVisitor& visitor) { params.visit_params(visitor); }, secrets);
}

// The paths whose values differ, or that are in one of the two alone.
[[nodiscard]] std::vector<std::string> differences(const SettingValues& before, const SettingValues& after);

}  // namespace balanceroute
