// flags.hpp - settings on the command line: each becomes a flag of its name, `limits.body_bytes` `--limits-body-bytes`.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "config/given_settings.hpp"
#include "core/params.hpp"

namespace CLI {
class App;
}

namespace balanceroute {

// Adds one flag for every value of `params` that is not in a list of sections. Reading the command line sets the
// values; one outside its range is a CLI::ValidationError such as `--r-max = 99: expected 1..64`. With `given`, the
// flags that were used are noted there and none is required, because the values may also come from elsewhere. `params`
// and `given` live as long as `app`.
void add_flags(CLI::App& app, const std::function<void(ParamVisitor&)>& params, GivenSettings* given = nullptr);

template <class Params>
void add_flags(CLI::App& app, Params& params, GivenSettings* given = nullptr)
  requires requires(ParamVisitor& visitor) { params.visit_params(visitor); }
{
  add_flags(app, [&params](ParamVisitor& visitor) { params.visit_params(visitor); }, given);
}

// `--limits-body-bytes` for `limits.body_bytes`.
[[nodiscard]] std::string flag_name(std::string_view path);

}  // namespace balanceroute
