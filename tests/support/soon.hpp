// soon.hpp - waits for what other threads do: it is as said soon, or never.
#pragma once

#include <chrono>
#include <thread>

namespace balanceroute::testing_support {

// Whether the condition became true; a test that fails waits for `longest`, one that passes hardly at all.
template <class Condition>
bool soon(Condition condition, std::chrono::seconds longest = std::chrono::seconds{20}) {
  const auto deadline = std::chrono::steady_clock::now() + longest;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace balanceroute::testing_support
