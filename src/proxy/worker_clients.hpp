// worker_clients.hpp - the connections of one I/O thread to every worker.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "core/ids.hpp"
#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/worker_directory.hpp"

namespace balanceroute::proxy {

// WorkerClients gives each worker of a fleet a connection pool on one thread, from its first request on.
//   Threads  only on `thread`.
class WorkerClients {
 public:
  WorkerClients(net::IoThread& thread, const WorkerDirectory& directory, net::ClientOptions options)
      : thread_{&thread}, directory_{&directory}, options_{std::move(options)} {}

  net::HttpClient& of(WorkerId worker) {
    if (clients_.size() <= worker.value()) clients_.resize(worker.value() + std::size_t{1});
    auto& client = clients_[worker.value()];
    if (!client) client = std::make_unique<net::HttpClient>(*thread_, directory_->address(worker).endpoint, options_);
    return *client;
  }

 private:
  net::IoThread* thread_;
  const WorkerDirectory* directory_;
  net::ClientOptions options_;
  std::vector<std::unique_ptr<net::HttpClient>> clients_;  // by WorkerId
};

}  // namespace balanceroute::proxy
