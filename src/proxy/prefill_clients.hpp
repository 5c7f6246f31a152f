// prefill_clients.hpp - one I/O thread's connections to a fleet's prefill instances and to their bootstrap servers.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/dialects/dialect.hpp"
#include "proxy/prefill_book.hpp"

namespace balanceroute::proxy {

// PrefillClients gives each prefill instance a connection pool on one thread.
//   Threads  only on `thread`.
class PrefillClients {
 public:
  PrefillClients(net::IoThread& thread, const std::vector<PrefillPeer>& peers, const net::ClientOptions& options);

  net::HttpClient& of(PrefillId id) { return *instances_[id.value()]->engine; }
  // The id that the instance's engine has now, from GET /query of its bootstrap server. What was told is believed for a
  // second: a restarted engine has another id.
  net::asio::awaitable<std::expected<std::string, net::NetError>> engine_id(PrefillId id, net::TimePoint deadline);
  // The next one asks again.
  void forget_engine_id(PrefillId id) { instances_[id.value()]->engine_id.reset(); }

 private:
  struct Instance {
    std::int32_t rank;
    std::unique_ptr<net::HttpClient> engine;
    std::unique_ptr<net::HttpClient> bootstrap;
    std::optional<std::string> engine_id;
    net::TimePoint told{};
  };

  net::IoThread& thread_;
  std::vector<std::unique_ptr<Instance>> instances_;  // by PrefillId
};

}  // namespace balanceroute::proxy
