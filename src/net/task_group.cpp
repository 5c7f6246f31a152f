#include "net/task_group.hpp"

#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/error.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

namespace balanceroute::net {

namespace {

bool is_cancellation(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const boost::system::system_error& error) {
    return error.code() == asio::error::operation_aborted;
  } catch (...) {
    return false;
  }
}

}  // namespace

TaskGroup::TaskGroup(IoThread& thread, OnFailure on_failure)
    : thread_{thread}, on_failure_{std::move(on_failure)}, empty_{thread} {
  empty_.set();
}

TaskGroup::~TaskGroup() = default;

void TaskGroup::Handle::cancel() const {
  if (const auto signal = signal_.lock()) signal->emit(asio::cancellation_type::terminal);
}

TaskGroup::Handle TaskGroup::spawn(asio::awaitable<void> task) {
  empty_.reset();
  const auto entry = signals_.insert(signals_.end(), std::make_shared<asio::cancellation_signal>());
  auto on_end = [this, entry](const std::exception_ptr& failure) {
    if (failure && !is_cancellation(failure)) on_failure_(failure);
    signals_.erase(entry);
    if (signals_.empty()) empty_.set();
  };
  asio::co_spawn(thread_.context(), std::move(task), asio::bind_cancellation_slot((*entry)->slot(), std::move(on_end)));
  return Handle{*entry};
}

void TaskGroup::cancel_all() {
  const auto signals = signals_;  // a cancelled task may end, and leave the list, at once
  for (const auto& signal : signals) signal->emit(asio::cancellation_type::terminal);
}

asio::awaitable<bool> TaskGroup::join(TimePoint deadline) {
  const WaitResult result = co_await empty_.wait(deadline);
  co_return result == WaitResult::Set;
}

}  // namespace balanceroute::net
