// admin.hpp - the routes of the admin listener: what the router holds, and what it thinks.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "net/server.hpp"
#include "proxy/status_routes.hpp"

namespace balanceroute::proxy {

// Admin answers operators.
//   Threads  handle() on any I/O thread.
class Admin {
 public:
  Admin(ServiceContext& service, StatusRoutes& status) : service_{service}, status_{status} {}

  net::asio::awaitable<void> handle(net::HttpExchange& exchange);

 private:
  net::asio::awaitable<void> show_ledger(net::HttpExchange& exchange);
  net::asio::awaitable<void> explain(net::HttpExchange& exchange);

  ServiceContext& service_;
  StatusRoutes& status_;
};

}  // namespace balanceroute::proxy
