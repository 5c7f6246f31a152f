// admin_request.hpp - what operators send: bodies as declared settings, fleets by name.
#pragma once

#include <expected>
#include <string>
#include <string_view>
#include <utility>

#include "config/yaml_reader.hpp"
#include "net/http.hpp"
#include "proxy/generation.hpp"
#include "proxy/openai_error.hpp"

namespace balanceroute::proxy {

ApiError bad_admin_request(std::string message);
net::HttpResponse wrong_method(std::string_view allowed);

// The fleet of that name; without a name the only one.
std::expected<Fleet*, ApiError> find_fleet(ServiceContext& service, std::string_view name);

// A query as the JSON object that says the same.
std::expected<std::string, ApiError> json_of_query(std::string_view query);

// A JSON object onto `defaults`; the error names every member that is not as declared.
template <class Params>
std::expected<Params, ApiError> read_admin_body(std::string_view body, Params defaults = {}) {
  if (body.find_first_not_of(" \t\r\n") == std::string_view::npos) body = "{}";
  const auto read = read_yaml(body, "body", defaults);
  if (!read) return std::unexpected(bad_admin_request(read.error().text()));
  return defaults;
}

// What an operator asks of one fleet.
template <class Command>
struct FleetCommand {
  Command command;
  Fleet* fleet;
};

// `read` with the fleet that its member `fleet` names, or why it cannot be obeyed.
template <class Command>
std::expected<FleetCommand<Command>, ApiError> for_fleet(ServiceContext& service,
                                                         std::expected<Command, ApiError> read) {
  if (!read) return std::unexpected(std::move(read.error()));
  const auto fleet = find_fleet(service, read->fleet);
  if (!fleet) return std::unexpected(fleet.error());
  return FleetCommand<Command>{*std::move(read), *fleet};
}

}  // namespace balanceroute::proxy
