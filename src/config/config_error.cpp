#include "config/config_error.hpp"

namespace balanceroute {
namespace {

// `fleets[0].name` is a part of `fleets[0]`, which is a part of `fleets`. Empty for a part of nothing.
std::string_view whole_of(std::string_view path) {
  const std::size_t end = path.find_last_of(".[");
  return end == std::string_view::npos ? std::string_view{} : path.substr(0, end);
}

}  // namespace

std::string ConfigError::text() const {
  std::string all;
  for (const std::string& problem : problems) all += (all.empty() ? "" : "\n") + problem;
  return all;
}

std::string with_origin(std::string_view problem, const Origins& origins) {
  for (std::string_view path = problem.substr(0, problem.find_first_of(" :")); !path.empty(); path = whole_of(path)) {
    if (const auto origin = origins.find(path); origin != origins.end()) {
      return origin->second + ": " + std::string{problem};
    }
  }
  return std::string{problem};
}

}  // namespace balanceroute
