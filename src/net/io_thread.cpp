#include "net/io_thread.hpp"

#include <pthread.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <latch>

namespace balanceroute::net {

IoThread::IoThread(std::string name, const Clock& clock)
    : name_{std::move(name)}, clock_{clock}, context_{1}, alarm_{context_} {
  if (clock_.moves_by_itself()) timers_.on_earlier([this] { wait_for_next_deadline(); });
}

IoThread::~IoThread() {
  stop();
}

void IoThread::start() {
  thread_ = std::thread{[this] {
    pthread_setname_np(pthread_self(), name_.substr(0, 15).c_str());
    const auto work = asio::make_work_guard(context_);
    context_.run();
  }};
}

void IoThread::stop() {
  context_.stop();
  if (thread_.joinable()) thread_.join();
}

void IoThread::post(std::move_only_function<void()> task) {
  asio::post(context_, std::move(task));
}

void IoThread::dispatch(std::move_only_function<void()> task) {
  asio::dispatch(context_, std::move(task));
}

void IoThread::call(const std::function<void()>& task) {
  if (!thread_.joinable() || is_current()) {
    task();
    return;
  }
  std::latch done{1};
  post([&] {
    task();
    done.count_down();
  });
  done.wait();
}

void IoThread::wait_for_next_deadline() {
  const TimePoint deadline = timers_.next_deadline();
  if (deadline == kNever || (deadline >= alarm_deadline_ && alarm_deadline_ != kNever)) return;
  alarm_deadline_ = deadline;
  alarm_.expires_at(deadline);
  alarm_.async_wait([this](const boost::system::error_code& failure) {
    if (failure) return;  // replaced by an earlier deadline
    alarm_deadline_ = kNever;
    timers_.fire_due(clock_.now());
    wait_for_next_deadline();
  });
}

IoThreads::IoThreads(std::size_t count, const std::string& name, const Clock& clock) {
  for (std::size_t i = 0; i < count; ++i) {
    threads_.push_back(std::make_unique<IoThread>(name + "-" + std::to_string(i), clock));
  }
}

void IoThreads::start() {
  for (auto& thread : threads_) thread->start();
}

void IoThreads::stop() {
  for (auto& thread : threads_) thread->stop();
}

}  // namespace balanceroute::net
