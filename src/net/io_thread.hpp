// io_thread.hpp - a thread that runs connections, and the set of them.
//
// Each thread has its own io_context that nobody else runs, so what lives on it needs no locks; other threads reach it
// through post() and dispatch() only.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "net/clock.hpp"
#include "net/timer_queue.hpp"

namespace balanceroute::net {

namespace asio = boost::asio;

// IoThread runs one io_context and one TimerQueue on one thread.
//   Threads  context(), timers() and clock() are for code that runs on this thread; post, dispatch, start and stop may
//            be called from any thread.
class IoThread {
 public:
  IoThread(std::string name, const Clock& clock);
  ~IoThread();
  IoThread(const IoThread&) = delete;
  IoThread& operator=(const IoThread&) = delete;

  void start();
  // Ends the loop and waits for the thread. What is still queued is destroyed with the context.
  void stop();

  // Runs `task` later on this thread.
  void post(std::move_only_function<void()> task);
  // Runs `task` at once when called on this thread, else posts it.
  void dispatch(std::move_only_function<void()> task);
  // Runs `task` on this thread and returns when it is done; here and now when the thread does not run.
  void call(const std::function<void()>& task);
  bool is_current() const { return thread_.get_id() == std::this_thread::get_id(); }

  asio::io_context& context() { return context_; }
  TimerQueue& timers() { return timers_; }
  TimePoint now() const { return clock_.now(); }

 private:
  void wait_for_next_deadline();

  std::string name_;
  const Clock& clock_;
  asio::io_context context_;
  TimerQueue timers_;
  asio::steady_timer alarm_;
  TimePoint alarm_deadline_ = kNever;
  std::thread thread_;
};

// IoThreads is a fixed set of IoThread, dealt out round robin.
class IoThreads {
 public:
  IoThreads(std::size_t count, const std::string& name, const Clock& clock);
  void start();
  void stop();
  std::size_t size() const { return threads_.size(); }
  IoThread& at(std::size_t i) { return *threads_[i]; }
  IoThread& next() { return *threads_[turn_++ % threads_.size()]; }  // not synchronised

 private:
  std::vector<std::unique_ptr<IoThread>> threads_;
  std::size_t turn_ = 0;
};

}  // namespace balanceroute::net
