// timer_queue.hpp - deadlines in order, fired by whoever owns the time.
//
// Leaves out waiting itself: IoThread waits for next_deadline() and calls fire_due(); a test calls it with a manual
// clock's time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "net/clock.hpp"

namespace balanceroute::net {

class Timer;

// TimerQueue keeps armed timers by deadline.
//   Order    Timers fire by deadline, equal deadlines in the order in which they were armed.
//   Cost     arm and cancel O(log n), next_deadline O(1).
//   Threads  not synchronised; one thread owns the queue and every Timer on it.
class TimerQueue {
 public:
  TimerQueue() = default;
  TimerQueue(const TimerQueue&) = delete;
  TimerQueue& operator=(const TimerQueue&) = delete;
  ~TimerQueue();

  // kNever when nothing is armed.
  TimePoint next_deadline() const;
  // Calls every timer whose deadline is at or before `now`; a callback may arm, cancel or destroy timers.
  void fire_due(TimePoint now);
  std::size_t size() const { return heap_.size(); }
  // Called when an arming makes next_deadline() earlier.
  void on_earlier(std::function<void()> wake) { wake_ = std::move(wake); }

 private:
  friend class Timer;
  void insert(Timer& timer);
  void erase(Timer& timer);
  void sift_up(std::size_t i);
  void sift_down(std::size_t i);
  void place(std::size_t i, Timer* timer);

  std::vector<Timer*> heap_;
  std::uint64_t armed_count_ = 0;
  std::function<void()> wake_;
};

// Timer calls a function once, at its deadline, unless it is cancelled or destroyed before.
class Timer {
 public:
  explicit Timer(TimerQueue& queue) : queue_{&queue} {}
  Timer(const Timer&) = delete;
  Timer& operator=(const Timer&) = delete;
  ~Timer() { cancel(); }

  // Replaces an earlier arming. kNever only cancels it.
  void arm(TimePoint deadline, std::move_only_function<void()> callback);
  void cancel();
  bool armed() const { return index_ != kIdle; }
  TimePoint deadline() const { return deadline_; }

 private:
  friend class TimerQueue;
  static constexpr std::size_t kIdle = static_cast<std::size_t>(-1);

  bool before(const Timer& other) const {
    return deadline_ != other.deadline_ ? deadline_ < other.deadline_ : serial_ < other.serial_;
  }

  TimerQueue* queue_;
  TimePoint deadline_ = kNever;
  std::uint64_t serial_ = 0;
  std::size_t index_ = kIdle;
  std::move_only_function<void()> callback_;
};

}  // namespace balanceroute::net
