#include "cli/termination.hpp"

#include <pthread.h>

#include <ctime>

namespace balanceroute::cli {

Termination::Termination() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGINT);
  sigaddset(&signals_, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals_, &before_);
}

Termination::~Termination() {
  pthread_sigmask(SIG_SETMASK, &before_, nullptr);
}

void Termination::wait() const {
  int signal = 0;
  if (sigwait(&signals_, &signal) == 0) ++requests_;
}

int Termination::requests() const {
  const timespec now{};
  while (sigtimedwait(&signals_, nullptr, &now) > 0) ++requests_;
  return requests_;
}

}  // namespace balanceroute::cli
