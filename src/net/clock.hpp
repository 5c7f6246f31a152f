// clock.hpp - the source of time behind every deadline.
//
// Code that waits takes a Clock, so that a test moves time by hand and a run never depends on the machine's speed.
#pragma once

#include <atomic>
#include <chrono>

namespace balanceroute::net {

using Duration = std::chrono::nanoseconds;
using TimePoint = std::chrono::time_point<std::chrono::steady_clock, Duration>;

inline constexpr TimePoint kNever = TimePoint::max();

// Clock tells monotonic time. Threads: now() may be called from any thread.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint now() const = 0;
  // False for a clock that a test moves: nobody may wait for it in real time.
  virtual bool moves_by_itself() const { return true; }
};

class SteadyClock final : public Clock {
 public:
  TimePoint now() const override { return std::chrono::steady_clock::now(); }
};

// ManualClock stands still until a test moves it.
class ManualClock final : public Clock {
 public:
  TimePoint now() const override { return TimePoint{Duration{since_epoch_.load()}}; }
  bool moves_by_itself() const override { return false; }
  void advance(Duration by) { since_epoch_ += by.count(); }

 private:
  std::atomic<Duration::rep> since_epoch_{0};
};

}  // namespace balanceroute::net
