#include "cli/termination.hpp"

#include <pthread.h>

#include <ctime>

namespace balanceroute::cli {

Termination::Termination(Hangup hangup) {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  waited_ = signals_;
  if (hangup == Hangup::rereads) sigaddset(&waited_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &waited_, &before_);
}

Termination::~Termination() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Termination::wait() const {
  int signal = 0;
  if (sigwait(&signals_, &signal) == 0) ++requests_;
}

Termination::Wish Termination::wait_for(std::chrono::nanoseconds longest) const {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(longest);
  const timespec time{.tv_sec = seconds.count(), .tv_nsec = (longest - seconds).count()};
  const int signal = sigtimedwait(&waited_, nullptr, &time);
  if (signal < 0) return Wish::none;
  if (signal == SIGHUP) return Wish::reread;
  ++requests_;
  return Wish::stop;
}

int Termination::requests() const {
  const timespec now{};
  while (sigtimedwait(&signals_, nullptr, &now) > 0) ++requests_;
  return requests_;
}

}  // namespace balanceroute::cli
