// task_group.hpp - coroutines that somebody waits for: nothing is spawned and forgotten.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/cancellation_type.hpp>
#include <cstddef>
#include <exception>
#include <functional>
#include <list>
#include <memory>

#include "net/event.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::net {

// TaskGroup runs coroutines on one thread, reports what they throw, cancels and awaits them together.
//   Threads  spawn, cancel_all, size and join are for code on `thread`.
class TaskGroup {
 public:
  // Called with what a task threw; a task that ends because it was cancelled is no failure.
  using OnFailure = std::function<void(std::exception_ptr)>;

  TaskGroup(IoThread& thread, OnFailure on_failure);
  ~TaskGroup();
  TaskGroup(const TaskGroup&) = delete;
  TaskGroup& operator=(const TaskGroup&) = delete;

  // Handle cancels one task; it may outlive the task.
  class Handle {
   public:
    Handle() = default;
    void cancel() const;

   private:
    friend class TaskGroup;
    explicit Handle(std::weak_ptr<asio::cancellation_signal> signal) : signal_{std::move(signal)} {}
    std::weak_ptr<asio::cancellation_signal> signal_;
  };

  Handle spawn(asio::awaitable<void> task);
  void cancel_all();
  std::size_t size() const { return signals_.size(); }
  // Waits until no task is left, or the deadline passes; true when none is left.
  asio::awaitable<bool> join(TimePoint deadline = kNever);

 private:
  IoThread& thread_;
  OnFailure on_failure_;
  std::list<std::shared_ptr<asio::cancellation_signal>> signals_;
  Event empty_;
};

}  // namespace balanceroute::net
