// background_tasks.hpp - coroutines that outlive the request that started them, and their end with the service.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "net/io_thread.hpp"
#include "net/task_group.hpp"

namespace balanceroute::proxy {

// BackgroundTasks keeps a task group for each I/O thread.
//   Threads  on(i) is for code on I/O thread i; stop() for the owner's thread.
class BackgroundTasks {
 public:
  BackgroundTasks(net::IoThreads& threads, const net::TaskGroup::OnFailure& on_failure) : threads_{threads} {
    for (std::size_t i = 0; i < threads.size(); ++i) {
      groups_.push_back(std::make_unique<net::TaskGroup>(threads.at(i), on_failure));
    }
  }

  net::TaskGroup& on(std::size_t thread) { return *groups_[thread]; }

  // Cancels every task and waits for its end; before the threads stop.
  void stop() {
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      threads_.at(i).call([&] { groups_[i]->cancel_all(); });
      bool ended = false;
      while (!ended) threads_.at(i).call([&] { ended = groups_[i]->size() == 0; });
    }
  }

 private:
  net::IoThreads& threads_;
  std::vector<std::unique_ptr<net::TaskGroup>> groups_;  // by I/O thread
};

}  // namespace balanceroute::proxy
