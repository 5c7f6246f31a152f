// termination.hpp - SIGINT and SIGTERM as something a command waits for.
#pragma once

#include <csignal>

namespace balanceroute::cli {

// Termination catches SIGINT and SIGTERM while it lives.
//   Threads  one at a time in the process; make it before other threads start, so that they inherit the blocked mask.
class Termination {
 public:
  Termination();
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Returns at the first request to stop.
  void wait() const;
  // How many requests to stop have come, those that wait() returned for included.
  int requests() const;

 private:
  sigset_t signals_{};
  sigset_t before_{};
  mutable int requests_ = 0;
};

}  // namespace balanceroute::cli
