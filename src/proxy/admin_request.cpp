#include "proxy/admin_request.hpp"

#include <boost/url/encoding_opts.hpp>
#include <boost/url/parse_query.hpp>
#include <charconv>
#include <nlohmann/json.hpp>
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

std::expected<std::string, ApiError> json_of_query(std::string_view query) {
  nlohmann::json object = nlohmann::json::object();
  if (query.empty()) return object.dump();  // Boost.URL 1.81 reads past an empty view
  const auto fields = boost::urls::parse_query(boost::urls::string_view{query.data(), query.size()});
  if (!fields) return std::unexpected(bad_admin_request("the query cannot be read: expected ?url=... or ?id=..."));
  for (const auto& field : *fields) {
    const std::string value = field.value.decode();
    std::int64_t number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const bool whole = error == std::errc{} && end == value.data() + value.size();
    object[field.key.decode()] = whole ? nlohmann::json(number) : nlohmann::json(value);
  }
  // What is no UTF-8 names no worker: it need not survive.
  return object.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace balanceroute::proxy
