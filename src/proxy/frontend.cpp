#include "proxy/frontend.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "proxy/authentication.hpp"
#include "proxy/dialects/layerwise_dialect.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/request_heads.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::proxy {

namespace {

ApiError client_error(int status, std::string_view code, std::string message) {
  return {status, "invalid_request_error", code, std::move(message)};
}

struct Route {
  std::string_view path;
  bool posts;
};

constexpr std::string_view kMetaserver = "/v1/metaserver";
constexpr std::array kRoutes{Route{"/v1/chat/completions", true}, Route{"/v1/completions", true},
                             Route{"/v1/responses", true},        Route{"/v1/messages", true},
                             Route{"/v1/models", false},          Route{kMetaserver, true}};

// Needs no key: health and metrics, and what engines call with the random number of a request that they were sent.
bool is_open(std::string_view path) {
  return path == kMetaserver || (StatusRoutes::has(path) && Forwarding::method_of(path).empty());
}

}  // namespace

net::asio::awaitable<void> Frontend::handle(net::HttpExchange& exchange) {
  const std::string_view path = without_final_slash(exchange.request().path());
  if (auto refusal = misdirected(exchange.request(), path)) {
    co_await exchange.respond(std::move(*refusal));
  } else if (path == kMetaserver) {
    co_await take_callback(exchange);
  } else if (is_open(path)) {
    co_await status_.serve(exchange, path);
  } else {
    co_await serve_client(exchange, path);
  }
}

bool Frontend::wants_body(const net::HttpRequest& head) const {
  const std::string_view path = without_final_slash(head.path());
  return is_open(path) || identify(service_.params.current().keys, head, shape_of(path)).has_value();
}

// What is not served here, or not by that method.
std::optional<net::HttpResponse> Frontend::misdirected(const net::HttpRequest& request, std::string_view path) {
  if (path.starts_with("/v1/responses/")) {
    return error_response(client_error(404, "not_stored", "responses are not stored here"));
  }
  const auto route = std::ranges::find(kRoutes, path, &Route::path);
  const std::string_view forwarded = Forwarding::method_of(path);
  if (route == kRoutes.end() && forwarded.empty() && !StatusRoutes::has(path)) {
    service_.metrics.unknown_path();
    return error_response(client_error(404, "unknown_path", "this path is not served here"));
  }
  const bool posts = (route != kRoutes.end() && route->posts) || forwarded == "POST";
  const bool reads = request.method == "GET" || request.method == "HEAD";
  if (posts ? request.method == "POST" : reads) return std::nullopt;
  net::HttpResponse refusal = error_response(client_error(405, "method_not_allowed", "this path takes another method"));
  refusal.headers.add("Allow", posts ? "POST" : "GET, HEAD");
  return refusal;
}

net::asio::awaitable<void> Frontend::serve_client(net::HttpExchange& exchange, std::string_view path) {
  const auto key = identify(service_.params.current().keys, exchange.request(), shape_of(path));
  if (!key) {
    co_await refuse_unknown(exchange, key.error(), path);
    co_return;
  }
  if (*key == nullptr) {
    co_await serve(exchange, path, nullptr);
    co_return;
  }
  const auto permit = limits_.admit(**key, service_.clock.now());
  if (!permit) {
    co_await refuse_more(exchange, permit.error(), path, (*key)->tenant.name);
    co_return;
  }
  co_await serve(exchange, path, *key);
}

net::asio::awaitable<void> Frontend::serve(net::HttpExchange& exchange, std::string_view path,
                                           const ApiKeyParams* key) {
  if (path == "/v1/chat/completions") {
    co_await generate(exchange, GenerationKind::ChatCompletion, key);
  } else if (path == "/v1/completions") {
    co_await generate(exchange, GenerationKind::TextCompletion, key);
  } else if (path == "/v1/responses") {
    co_await generate(exchange, GenerationKind::Response, key);
  } else if (path == "/v1/messages") {
    co_await generate(exchange, GenerationKind::Message, key);
  } else if (path == "/v1/models") {
    co_await list_models(exchange, key);
  } else {
    co_await forwarding_.forward(exchange, key);
  }
}

net::asio::awaitable<void> Frontend::refuse_unknown(net::HttpExchange& exchange, const ApiError& error,
                                                    std::string_view path) {
  service_.metrics.unauthorized();
  service_.log.info("unauthorized client={} path={} reason={}", exchange.peer(), telemetry::log_value(path),
                    error.code);
  co_await exchange.respond(unauthorized(error, shape_of(path)));
}

net::asio::awaitable<void> Frontend::refuse_more(net::HttpExchange& exchange, const LimitReached& reached,
                                                 std::string_view path, const std::string& tenant) {
  const std::string limit{to_string(reached.limit)};
  service_.metrics.limited(tenant, limit);
  service_.log.info("limited client={} tenant={} path={} limit={}", exchange.peer(), tenant, telemetry::log_value(path),
                    limit);
  ApiError error = api_error(429, "rate_limit_exceeded",
                             "the API key has reached its limit of " + limit + "; try again in " +
                                 std::to_string(reached.retry_after.count()) + " s");
  error.retry_after = reached.retry_after;
  co_await exchange.respond(error_response(error, shape_of(path)));
}

net::asio::awaitable<void> Frontend::generate(net::HttpExchange& exchange, GenerationKind kind,
                                              const ApiKeyParams* key) {
  Generation generation{service_, exchange, kind, key};
  co_await generation.run();
}

net::asio::awaitable<void> Frontend::take_callback(net::HttpExchange& exchange) {
  std::string object = exchange.request().body;
  const auto json = nlohmann::json::parse(object, nullptr, false);
  if (!json.is_object() || !json.contains("request_id") || !json["request_id"].is_string()) {
    co_await exchange.respond(error_response(client_error(400, "bad_body", "request_id: expected a string")));
    co_return;
  }
  std::string id = json["request_id"].get<std::string>();
  const std::string request{request_of_child(id)};
  const net::TimePoint deadline =
      service_.clock.now() + std::chrono::duration_cast<net::Duration>(
                                 std::chrono::duration<double, std::milli>{service_.params->timeouts.first_byte_ms});
  const auto answer =
      co_await service_.callbacks.call(exchange.thread(), request, std::move(id), std::move(object), deadline);
  net::HttpResponse response = net::json_response(200, R"({"status":"ok"})");
  if (answer == CallbackBoard::Answer::Unknown) {
    response = error_response(client_error(404, "unknown_request", "no request of that id waits for a prefill"));
  } else if (answer == CallbackBoard::Answer::Failed) {
    response = error_response({502, "server_error", "prefill_failed", "no prefill engine did it"});
  }
  co_await exchange.respond(std::move(response));
}

net::asio::awaitable<void> Frontend::list_models(net::HttpExchange& exchange, const ApiKeyParams* key) {
  nlohmann::ordered_json list;
  list["object"] = "list";
  list["data"] = nlohmann::ordered_json::array();
  for (const auto& fleet : service_.fleets) {
    if (fleet->params().models.empty()) {
      co_await forwarding_.forward(exchange, key);  // the one fleet has no list of models: its engines have
      co_return;
    }
    for (const ModelParams& model : fleet->params().models) {
      const auto add = [&](const std::string& name) -> nlohmann::ordered_json& {
        list["data"].push_back({{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "balanceroute"}});
        return list["data"].back();
      };
      add(model.name);
      for (const std::string& name : model.aliases) add(name);
      for (const std::string& name : model.adapters) add(name)["parent"] = model.name;
    }
  }
  co_await exchange.respond(net::json_response(200, list.dump()));
}

}  // namespace balanceroute::proxy
