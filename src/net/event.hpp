// event.hpp - one coroutine waits for something that other code on the same thread announces.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <functional>

#include "net/io_thread.hpp"

namespace balanceroute::net {

enum class WaitResult { Set, Timeout, Cancelled };

// Event is a flag that one coroutine can wait for.
//   Threads  everything happens on `thread`; to set it from elsewhere, post to that thread.
//   Invariants  at most one waiter; set() before wait() is not lost; reset() takes the flag down again.
class Event {
 public:
  explicit Event(IoThread& thread) : thread_{thread}, timer_{thread.timers()} {}
  ~Event();
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void set();
  void reset() { set_ = false; }
  bool is_set() const { return set_; }
  // Cancelled when the waiting coroutine is cancelled.
  asio::awaitable<WaitResult> wait(TimePoint deadline = kNever);

 private:
  void resume(WaitResult result);

  IoThread& thread_;
  Timer timer_;
  bool set_ = false;
  std::move_only_function<void(WaitResult)> waiter_;
  asio::cancellation_slot waiter_slot_;
};

}  // namespace balanceroute::net
