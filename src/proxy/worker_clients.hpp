// worker_clients.hpp - the connections of one I/O thread to every worker.
#pragma once

#include <memory>
#include <vector>

#include "core/ids.hpp"
#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "proxy/worker_address.hpp"

namespace balanceroute::proxy {

// WorkerClients gives each worker of a fleet a connection pool on one thread.
//   Threads  only on `thread`.
class WorkerClients {
 public:
  WorkerClients(net::IoThread& thread, const std::vector<WorkerAddress>& workers, net::ClientOptions options) {
    for (const WorkerAddress& worker : workers) {
      clients_.push_back(std::make_unique<net::HttpClient>(thread, worker.endpoint, options));
    }
  }

  net::HttpClient& of(WorkerId worker) { return *clients_[worker.value()]; }

 private:
  std::vector<std::unique_ptr<net::HttpClient>> clients_;  // by WorkerId
};

}  // namespace balanceroute::proxy
