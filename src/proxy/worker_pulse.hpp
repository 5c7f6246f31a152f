// worker_pulse.hpp - whether a worker has lately shown that it lives.
#pragma once

#include <atomic>

namespace balanceroute::proxy {

// WorkerPulse is set by whoever sees a token of the worker, and taken down by whoever looks.
//   Cost     beat() reads one shared cache line and writes it once a look.
//   Threads  any.
class WorkerPulse {
 public:
  void beat() {
    if (!alive_.load(std::memory_order_relaxed)) alive_.store(true, std::memory_order_relaxed);
  }
  bool take() { return alive_.exchange(false, std::memory_order_relaxed); }

 private:
  alignas(64) std::atomic<bool> alive_{false};
};

}  // namespace balanceroute::proxy
