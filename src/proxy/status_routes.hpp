// status_routes.hpp - the paths about the router itself that clients and operators both may ask.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "net/server.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// StatusRoutes answers "is it alive, can it serve, what is it, what has it counted".
//   Threads  serve() on any I/O thread.
class StatusRoutes {
 public:
  // `draining` makes readiness fail.
  StatusRoutes(ServiceContext& service, const std::atomic<bool>& draining) : service_{service}, draining_{draining} {}

  [[nodiscard]] static bool has(std::string_view path);
  // Of a path that it has().
  net::asio::awaitable<void> serve(net::HttpExchange& exchange, std::string_view path);

 private:
  ServiceContext& service_;
  const std::atomic<bool>& draining_;
};

}  // namespace balanceroute::proxy
