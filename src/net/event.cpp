#include "net/event.hpp"

#include <boost/asio/associated_cancellation_slot.hpp>
#include <boost/asio/async_result.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace balanceroute::net {

Event::~Event() = default;

void Event::set() {
  set_ = true;
  resume(WaitResult::Set);
}

asio::awaitable<WaitResult> Event::wait(TimePoint deadline) {
  if (set_) co_return WaitResult::Set;
  auto initiate = [this, deadline](auto handler) {
    waiter_slot_ = asio::get_associated_cancellation_slot(handler);
    waiter_ = std::move(handler);
    timer_.arm(deadline, [this] { resume(WaitResult::Timeout); });
    if (waiter_slot_.is_connected()) {
      waiter_slot_.assign([this](asio::cancellation_type) { resume(WaitResult::Cancelled); });
    }
  };
  const WaitResult result =
      co_await asio::async_initiate<const asio::use_awaitable_t<>, void(WaitResult)>(initiate, asio::use_awaitable);
  co_return result;
}

// The waiter runs from the thread's queue, never inside the call that announces.
void Event::resume(WaitResult result) {
  if (!waiter_) return;
  timer_.cancel();
  if (waiter_slot_.is_connected()) waiter_slot_.clear();
  asio::post(thread_.context(), [waiter = std::exchange(waiter_, nullptr), result]() mutable { waiter(result); });
}

}  // namespace balanceroute::net
