// admin.hpp - the routes of the admin listener: what the router holds, what it thinks, and what it is told to do.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "net/server.hpp"
#include "proxy/dashboard.hpp"
#include "proxy/live_feed.hpp"
#include "proxy/policy_routes.hpp"
#include "proxy/status_routes.hpp"
#include "proxy/worker_routes.hpp"

namespace balanceroute::proxy {

// Admin answers operators.
//   Threads  handle() on any I/O thread.
class Admin {
 public:
  Admin(ServiceContext& service, StatusRoutes& status, LiveFeed& feed)
      : service_{service},
        status_{status},
        feed_{feed},
        dashboard_{dashboard_files()},
        workers_{service},
        policy_{service} {}

  net::asio::awaitable<void> handle(net::HttpExchange& exchange);

 private:
  // Of a path that is for reading only.
  net::asio::awaitable<void> show(net::HttpExchange& exchange, std::string_view path);
  // Whether it brings the token, if there is one.
  [[nodiscard]] bool is_known(const net::HttpRequest& request) const;
  net::asio::awaitable<void> show_ledger(net::HttpExchange& exchange);
  net::asio::awaitable<void> show_snapshot(net::HttpExchange& exchange);
  net::asio::awaitable<void> show_steps(net::HttpExchange& exchange);
  net::asio::awaitable<void> explain(net::HttpExchange& exchange);

  ServiceContext& service_;
  StatusRoutes& status_;
  LiveFeed& feed_;
  Dashboard dashboard_;
  WorkerRoutes workers_;
  PolicyRoutes policy_;
};

}  // namespace balanceroute::proxy
