#include "proxy/callback_board.hpp"

#include <algorithm>

namespace balanceroute::proxy {

namespace {

// One call, on the thread that it came on.
struct Caller {
  explicit Caller(net::IoThread& on) : thread{on}, answered{on} {}

  net::IoThread& thread;
  net::Event answered;
  bool done = false;
};

}  // namespace

struct ExpectedCalls::State {
  State(net::IoThread& thread, std::size_t count) : home{thread}, expected{count}, complete{thread} {}

  net::IoThread& home;
  std::size_t expected;
  net::Event complete;
  std::vector<std::pair<std::string, std::string>> objects;
  std::vector<std::shared_ptr<Caller>> callers;
  bool over = false;
  bool fulfilled = false;

  // On the home thread.
  void add(std::string id, std::string object, std::shared_ptr<Caller> caller) {
    callers.push_back(std::move(caller));
    const bool again = std::ranges::any_of(objects, [&](const auto& one) { return one.first == id; });
    if (!again) objects.emplace_back(std::move(id), std::move(object));
    if (over) {
      answer_all();
    } else if (objects.size() == expected) {
      complete.set();
    }
  }

  void end(bool with_success) {
    if (std::exchange(over, true)) return;
    fulfilled = with_success;
    answer_all();
  }

  void answer_all() {
    for (const auto& caller : std::exchange(callers, {})) {
      caller->thread.dispatch([caller, done = fulfilled] {
        caller->done = done;
        caller->answered.set();
      });
    }
  }
};

ExpectedCalls::ExpectedCalls(CallbackBoard& board, std::string request, std::shared_ptr<State> state)
    : board_{board}, request_{std::move(request)}, state_{std::move(state)} {}

ExpectedCalls::~ExpectedCalls() {
  {
    const std::scoped_lock lock{board_.mutex_};
    board_.waiting_.erase(request_);
  }
  state_->end(false);
}

net::Event& ExpectedCalls::complete() {
  return state_->complete;
}

std::vector<std::pair<std::string, std::string>> ExpectedCalls::objects() const {
  auto objects = state_->objects;
  std::ranges::sort(objects);
  return objects;
}

void ExpectedCalls::fulfil() {
  state_->end(true);
}

std::unique_ptr<ExpectedCalls> CallbackBoard::expect(net::IoThread& home, std::string request, std::size_t calls) {
  auto state = std::make_shared<State>(home, calls);
  {
    const std::scoped_lock lock{mutex_};
    waiting_[request] = state;
  }
  return std::unique_ptr<ExpectedCalls>{new ExpectedCalls{*this, std::move(request), std::move(state)}};
}

net::asio::awaitable<CallbackBoard::Answer> CallbackBoard::call(net::IoThread& thread, std::string_view request,
                                                                std::string id, std::string object,
                                                                net::TimePoint deadline) {
  std::shared_ptr<State> state;
  {
    const std::scoped_lock lock{mutex_};
    const auto found = waiting_.find(std::string{request});
    if (found != waiting_.end()) state = found->second;
  }
  if (!state) co_return Answer::Unknown;
  auto caller = std::make_shared<Caller>(thread);
  net::IoThread& home = state->home;
  home.dispatch([state = std::move(state), caller, id = std::move(id), object = std::move(object)]() mutable {
    state->add(std::move(id), std::move(object), std::move(caller));
  });
  const net::WaitResult waited = co_await caller->answered.wait(deadline);
  co_return waited == net::WaitResult::Set && caller->done ? Answer::Done : Answer::Failed;
}

}  // namespace balanceroute::proxy
