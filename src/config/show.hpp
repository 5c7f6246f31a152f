// show.hpp - settings written out: as a configuration with the origin of each value, as a table for documents.
#pragma once

#include <functional>
#include <string>

#include "config/config_error.hpp"
#include "core/params.hpp"

namespace balanceroute {

// YAML that reads back to the same values, each followed by its origin as a comment. Secrets are left out: a comment
// says that one is set.
[[nodiscard]] std::string visit_to_yaml(const std::function<void(ParamVisitor&)>& params, const Origins& origins);

template <class Params>
[[nodiscard]] std::string to_yaml(Params params, const Origins& origins) {
  return visit_to_yaml([&params](ParamVisitor& visitor) { params.visit_params(visitor); }, origins);
}

// A Markdown table of every setting with type, range, default and meaning. Gives each list one entry.
[[nodiscard]] std::string visit_to_reference(const std::function<void(ParamVisitor&)>& params);

template <class Params>
[[nodiscard]] std::string to_reference(Params defaults = {}) {
  return visit_to_reference([&defaults](ParamVisitor& visitor) { defaults.visit_params(visitor); });
}

}  // namespace balanceroute
