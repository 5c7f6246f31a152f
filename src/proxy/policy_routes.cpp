#include "proxy/policy_routes.hpp"

#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "config/setting_values.hpp"
#include "proxy/admin_request.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/snapshots.hpp"

namespace balanceroute::proxy {
namespace {

struct PolicyCommand {
  std::string fleet;
  PolicyParams policy;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({"fleet", "Name of the fleet; may be left out where there is one."}, fleet);
    policy.visit_params(visitor);
  }
};

// What is set, and what decides now.
struct PolicyState {
  PolicyParams policy;
  FallbackStatus fallback;
};

PolicyState state_of(const Fleet& fleet) {
  return {fleet.policy(), fleet.fallback()};
}

nlohmann::ordered_json policy_json(const std::string& fleet, const PolicyState& state) {
  const PolicyParams& policy = state.policy;
  nlohmann::ordered_json body{{"fleet", fleet}};
  body["in_effect"] = state.fallback.instead.empty() ? policy.name : state.fallback.instead;
  body["fallback_causes"] = causes_in_force(state.fallback);
  for (const auto& [name, value] : values_of(policy)) body["policy"][name] = value;
  return body;
}

net::HttpResponse config_response(const ServiceContext& service) {
  const LiveSettings::Version& version = service.params.current();
  nlohmann::ordered_json body;
  for (const auto& [path, value] : values_of(version.params)) {
    const auto origin = version.origins.find(path);
    body["settings"][path] = {{"value", value},
                              {"origin", origin == version.origins.end() ? "default" : origin->second}};
  }
  return net::json_response(200, body.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
}

}  // namespace

bool PolicyRoutes::has(std::string_view path) {
  return path == "/policy" || path == "/config";
}

net::asio::awaitable<void> PolicyRoutes::serve(net::HttpExchange& exchange, std::string_view path) {
  const std::string& method = exchange.request().method;
  const std::string_view allowed = path == "/policy" ? "GET, PUT" : "GET";
  const bool reads = method == "GET" || method == "HEAD";
  if (path == "/config" && reads) {
    co_await exchange.respond(config_response(service_));
  } else if (path == "/policy" && reads) {
    co_await show(exchange);
  } else if (path == "/policy" && method == "PUT") {
    co_await put(exchange);
  } else {
    co_await exchange.respond(wrong_method(allowed));
  }
}

net::asio::awaitable<void> PolicyRoutes::show(net::HttpExchange& exchange) {
  const auto policies =
      co_await ask_fleets(exchange.thread(), service_.fleets, [](const Fleet& fleet) { return state_of(fleet); });
  nlohmann::ordered_json body;
  for (std::size_t f = 0; f < policies.size(); ++f) {
    body["fleets"].push_back(policy_json(service_.fleets[f]->name(), policies[f]));
  }
  co_await exchange.respond(net::json_response(200, body.dump(2)));
}

net::asio::awaitable<void> PolicyRoutes::put(net::HttpExchange& exchange) {
  const auto asked = for_fleet(service_, read_admin_body<PolicyCommand>(exchange.request().body));
  if (!asked) {
    co_await exchange.respond(error_response(asked.error()));
    co_return;
  }
  struct Outcome {
    std::expected<void, std::string> done;
    PolicyState state;
  };
  const auto set = [policy = asked->command.policy](Fleet& of) {
    auto done = of.set_policy(policy);
    return Outcome{std::move(done), state_of(of)};
  };
  const auto outcome = co_await ask_fleet(exchange.thread(), *asked->fleet, set);
  if (!outcome.done) {
    co_await exchange.respond(error_response(bad_admin_request(outcome.done.error())));
    co_return;
  }
  co_await exchange.respond(net::json_response(200, policy_json(asked->fleet->name(), outcome.state).dump(2)));
}

}  // namespace balanceroute::proxy
