// worker_routes.hpp - the workers of the fleets by HTTP: list, add, drain, make ready again, remove.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string_view>

#include "net/server.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// WorkerRoutes carries an operator's wishes to the memberships.
//   Answers  the workers that the command was for, as they are now. A removal is done when the worker is listed no
//   more. Threads  serve() on any I/O thread.
class WorkerRoutes {
 public:
  explicit WorkerRoutes(ServiceContext& service) : service_{service} {}

  [[nodiscard]] static bool has(std::string_view path);
  // Of a path that it has().
  net::asio::awaitable<void> serve(net::HttpExchange& exchange, std::string_view path);

 private:
  net::asio::awaitable<void> list(net::HttpExchange& exchange);
  net::asio::awaitable<void> add(net::HttpExchange& exchange);
  net::asio::awaitable<void> change(net::HttpExchange& exchange, std::string_view path);

  ServiceContext& service_;
};

}  // namespace balanceroute::proxy
