#include "proxy/json_delta.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::proxy {

nlohmann::json json_delta(const nlohmann::json& before, const nlohmann::json& after) {
  if (!before.is_object() || !after.is_object()) return after;
  nlohmann::json patch = nlohmann::json::object();
  for (const auto& [name, value] : before.items()) {
    if (!after.contains(name)) patch[name] = nullptr;
  }
  for (const auto& [name, value] : after.items()) {
    const auto old = before.find(name);
    if (old == before.end()) {
      patch[name] = value;
    } else if (*old != value) {
      // An object that takes the place of something else must not be read as a patch of it; RFC 7396 starts from an
      // empty one there, which is what the whole value says.
      patch[name] = json_delta(*old, value);
    }
  }
  return patch;
}

}  // namespace balanceroute::proxy
