// frontend.hpp - the routes of the client listener: an allow-list, so that an engine's control endpoints are never
// reached through the router.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>

#include "net/server.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// Frontend answers clients.
//   Threads  handle() on any I/O thread.
class Frontend {
 public:
  Frontend(ServiceContext& service, const std::atomic<bool>& draining) : service_{service}, draining_{draining} {}

  net::asio::awaitable<void> handle(net::HttpExchange& exchange);

 private:
  net::asio::awaitable<void> generate(net::HttpExchange& exchange, GenerationKind kind);
  net::asio::awaitable<void> list_models(net::HttpExchange& exchange);
  net::asio::awaitable<void> forward_to_any_worker(net::HttpExchange& exchange);

  ServiceContext& service_;
  const std::atomic<bool>& draining_;
};

// The answer to "can the router take requests": 200, or 503 with the reason.
net::HttpResponse readiness(const ServiceContext& service, bool draining, std::size_t ready_workers);

}  // namespace balanceroute::proxy
