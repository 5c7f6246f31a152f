// bootstrap_service.hpp - the bootstrap server of a prefill engine, where routers learn its ranks' engine ids.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "emulator/engine_service.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {

// BootstrapService answers GET /query as vLLM's Mooncake connector does, and GET /health.
//   Threads  only on the fleet's thread.
class BootstrapService {
 public:
  explicit BootstrapService(const EngineService& engine) : engine_{engine} {}

  boost::asio::awaitable<void> handle(net::HttpExchange& exchange);

 private:
  [[nodiscard]] std::string query_json() const;

  const EngineService& engine_;
};

}  // namespace balanceroute::emulator
