// json_delta.hpp - what has changed between two JSON documents, as a JSON Merge Patch (RFC 7396).
#pragma once

#include <nlohmann/json_fwd.hpp>

namespace balanceroute::proxy {

// The patch that makes `after` of `before`: members that are new or other, null for those that are gone. Arrays are
// replaced whole. `after` has no member that is null, for a patch cannot say that; elements of arrays may be.
[[nodiscard]] nlohmann::json json_delta(const nlohmann::json& before, const nlohmann::json& after);

}  // namespace balanceroute::proxy
