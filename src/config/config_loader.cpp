#include "config/config_loader.hpp"

namespace balanceroute {

GivenOverFile given_over_file(const GivenSettings& environment, const GivenSettings& flags) {
  GivenOverFile over{flags, {}};
  over.settings.insert(environment.begin(), environment.end());
  for (const auto& [path, text] : flags) over.origins.emplace(path, "flag " + flag_name(path));
  for (const auto& [path, text] : environment) over.origins.emplace(path, "environment " + variable_name(path));
  return over;
}

}  // namespace balanceroute
