// config_error.hpp - what is wrong with a configuration, and where its values come from.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute {

// Where a value was set, by its path: "router.yaml:12", "environment BALANCEROUTE_LISTEN", "flag --listen". What is not
// in it has its default. Lists and their entries are in it as well as values.
using Origins = std::map<std::string, std::string, std::less<>>;

// ConfigError lists every problem found, each a line like `router.yaml:12: fleets[0].policy.r_max = 99:
// expected 1..64`. Never empty.
struct ConfigError {
  std::vector<std::string> problems;

  // One problem a line, without a last newline.
  [[nodiscard]] std::string text() const;
};

// `problem`, which starts with the path of a setting, with the origin of that setting, or of what it is a part of, in
// front.
[[nodiscard]] std::string with_origin(std::string_view problem, const Origins& origins);

}  // namespace balanceroute
