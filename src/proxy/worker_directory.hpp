// worker_directory.hpp - where each worker of a fleet is reached, for every thread.
#pragma once

#include <cstddef>
#include <deque>
#include <mutex>

#include "core/ids.hpp"
#include "proxy/worker_address.hpp"

namespace balanceroute::proxy {

// WorkerDirectory keeps the address of every worker that ever joined a fleet, by WorkerId.
//   Invariants  an address never changes and is never taken out, so references stay valid.
//   Threads     any; add() is called in the order of ids.
class WorkerDirectory {
 public:
  void add(WorkerAddress address) {
    const std::scoped_lock lock{mutex_};
    addresses_.push_back(std::move(address));
  }
  [[nodiscard]] const WorkerAddress& address(WorkerId worker) const {
    const std::scoped_lock lock{mutex_};
    return addresses_[worker.value()];
  }
  [[nodiscard]] std::size_t size() const {
    const std::scoped_lock lock{mutex_};
    return addresses_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::deque<WorkerAddress> addresses_;
};

}  // namespace balanceroute::proxy
