// termination.hpp - SIGINT and SIGTERM as something a command waits for; SIGHUP too, for those that read again.
#pragma once

#include <chrono>
#include <csignal>

namespace balanceroute::cli {

// Termination catches SIGINT and SIGTERM while it lives, and SIGHUP if it is to.
//   Threads  one at a time in the process; make it before other threads start, so that they inherit the blocked mask.
class Termination {
 public:
  enum class Hangup { ends, rereads };
  explicit Termination(Hangup hangup = Hangup::ends);
  ~Termination();
  Termination(const Termination&) = delete;
  Termination& operator=(const Termination&) = delete;

  // Returns at the first request to stop.
  void wait() const;
  // Returns after `longest`, or as soon as somebody wants something.
  enum class Wish { none, stop, reread };
  Wish wait_for(std::chrono::nanoseconds longest) const;
  // How many requests to stop have come, those that wait() returned for included.
  int requests() const;

 private:
  sigset_t signals_{};  // that ask for an end
  sigset_t waited_{};   // those, and SIGHUP if it means something
  sigset_t before_{};
  mutable int requests_ = 0;
};

}  // namespace balanceroute::cli
