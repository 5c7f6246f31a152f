// policy_routes.hpp - the policies of the fleets and the settings in effect, by HTTP.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "net/server.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// PolicyRoutes shows what decides and lets an operator put another policy in its place.
//   PUT      replaces all of a fleet's policy settings, those left out by their defaults. Requests that wait move over.
//            It lasts until the next restart or reload that changes the fleet's policy.
//   Threads  serve() on any I/O thread.
class PolicyRoutes {
 public:
  explicit PolicyRoutes(ServiceContext& service) : service_{service} {}

  [[nodiscard]] static bool has(std::string_view path);
  // Of a path that it has().
  net::asio::awaitable<void> serve(net::HttpExchange& exchange, std::string_view path);

 private:
  net::asio::awaitable<void> show(net::HttpExchange& exchange);
  net::asio::awaitable<void> put(net::HttpExchange& exchange);

  ServiceContext& service_;
};

}  // namespace balanceroute::proxy
