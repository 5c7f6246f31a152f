// forwarding.hpp - requests that generate nothing: embeddings, ranks, scores, classes, tokens, the engine's version.
//
// They need no slot, so the ledger does not know them. The list of paths is all that engines are asked for beside
// generation: what controls an engine is never forwarded.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string_view>
#include <vector>

#include "net/server.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// Forwarding sends a request to the least busy engine server of its model's fleet, and to the next one when that cannot
// be reached. Busy is what the ledger knows to run there.
//   Bytes    as those of a generation: the body is as it was but for an alias of the model.
//   Threads  forward() on any I/O thread.
class Forwarding {
 public:
  explicit Forwarding(ServiceContext& service) : service_{service} {}

  // The method of a path that is forwarded; empty for others.
  static std::string_view method_of(std::string_view path);

  // `key`: whose request it is, where keys are needed.
  net::asio::awaitable<void> forward(net::HttpExchange& exchange, const ApiKeyParams* key);

 private:
  // What is sent, and to which of the workers first.
  struct Job {
    Fleet* fleet = nullptr;
    net::HttpRequest request;
    std::string model;
  };

  std::expected<Job, ApiError> read(const net::HttpRequest& request, std::string_view id,
                                    const ApiKeyParams* key) const;
  // One worker of each engine server, the least busy first, those that take nothing last.
  net::asio::awaitable<std::vector<WorkerId>> servers(Fleet& fleet, net::IoThread& thread) const;
  net::asio::awaitable<std::expected<net::HttpResponse, Failure>> ask(Job& job, net::IoThread& thread) const;

  ServiceContext& service_;
};

}  // namespace balanceroute::proxy
