#include "proxy/admin_request.hpp"

#include <utility>

namespace balanceroute::proxy {

ApiError bad_admin_request(std::string message) {
  return {400, "invalid_request_error", "bad_request", std::move(message)};
}

net::HttpResponse wrong_method(std::string_view allowed) {
  net::HttpResponse response =
      error_response({405, "invalid_request_error", "method_not_allowed", "this path takes " + std::string{allowed}});
  response.headers.add("Allow", std::string{allowed});
  return response;
}

std::expected<Fleet*, ApiError> find_fleet(ServiceContext& service, std::string_view name) {
  std::string names;
  for (const auto& fleet : service.fleets) {
    if (fleet->name() == name || (name.empty() && service.fleets.size() == 1)) return fleet.get();
    names += (names.empty() ? "" : ", ") + fleet->name();
  }
  if (name.empty()) return std::unexpected(bad_admin_request("fleet is missing: expected one of " + names));
  return std::unexpected(ApiError{404, "invalid_request_error", "unknown_fleet",
                                  "there is no fleet '" + std::string{name} + "': expected one of " + names});
}

}  // namespace balanceroute::proxy
