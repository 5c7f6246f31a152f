// frontend.hpp - the routes of the client listener: an allow-list, so that an engine's control endpoints are never
// reached through the router.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "net/server.hpp"
#include "proxy/forwarding.hpp"
#include "proxy/generation.hpp"
#include "proxy/request_limits.hpp"
#include "proxy/status_routes.hpp"

namespace balanceroute::proxy {

// Frontend answers clients.
//   Keys     where there are some every path needs one, but for health, metrics and what engines call.
//   Threads  any I/O thread.
class Frontend {
 public:
  Frontend(ServiceContext& service, StatusRoutes& status) : service_{service}, status_{status}, forwarding_{service} {}

  net::asio::awaitable<void> handle(net::HttpExchange& exchange);
  // Whether such a request is let in, so that its body is worth having.
  [[nodiscard]] bool wants_body(const net::HttpRequest& head) const;

 private:
  std::optional<net::HttpResponse> misdirected(const net::HttpRequest& request, std::string_view path);
  net::asio::awaitable<void> serve_client(net::HttpExchange& exchange, std::string_view path);
  net::asio::awaitable<void> refuse_unknown(net::HttpExchange& exchange, const ApiError& error, std::string_view path);
  net::asio::awaitable<void> refuse_more(net::HttpExchange& exchange, const LimitReached& reached,
                                         std::string_view path, const std::string& tenant);
  // `key`: whose request it is, where keys are needed.
  net::asio::awaitable<void> serve(net::HttpExchange& exchange, std::string_view path, const ApiKeyParams* key);
  net::asio::awaitable<void> generate(net::HttpExchange& exchange, GenerationKind kind, const ApiKeyParams* key);
  // A decode engine asks for the prefill of a request that it has (dialect ascend_layerwise).
  net::asio::awaitable<void> take_callback(net::HttpExchange& exchange);
  net::asio::awaitable<void> list_models(net::HttpExchange& exchange, const ApiKeyParams* key);

  ServiceContext& service_;
  StatusRoutes& status_;
  Forwarding forwarding_;
  RequestLimits limits_;
};

}  // namespace balanceroute::proxy
