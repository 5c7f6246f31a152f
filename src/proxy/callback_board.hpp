// callback_board.hpp - where decode engines' calls for a prefill find the request that waits for them.
//
// Source: engine-protocols 1.4: a decode engine calls once for each prompt and waits until the prefill is done.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/event.hpp"
#include "net/io_thread.hpp"

namespace balanceroute::proxy {

class CallbackBoard;

// ExpectedCalls is one request's wait for the calls of its decode engine.
//   Threads  only on the I/O thread of the request; its destructor takes the notice off the board and answers all who
//            wait that the prefill failed.
class ExpectedCalls {
 public:
  ~ExpectedCalls();
  ExpectedCalls(const ExpectedCalls&) = delete;
  ExpectedCalls& operator=(const ExpectedCalls&) = delete;

  // Set when every prompt has been called for.
  net::Event& complete();
  // What each call carried, as it was written, with the id that it named; by that id.
  [[nodiscard]] std::vector<std::pair<std::string, std::string>> objects() const;
  // Answers the calls: the KV has been pushed.
  void fulfil();

 private:
  friend class CallbackBoard;
  struct State;
  ExpectedCalls(CallbackBoard& board, std::string request, std::shared_ptr<State> state);

  CallbackBoard& board_;
  std::string request_;
  std::shared_ptr<State> state_;
};

// CallbackBoard finds the waiting request of a call, on whatever thread it comes.
//   Threads  any. Must outlive what it gave out.
class CallbackBoard {
 public:
  std::unique_ptr<ExpectedCalls> expect(net::IoThread& home, std::string request, std::size_t calls);

  enum class Answer { Done, Failed, Unknown };
  // Hands a call to its request and waits for the prefill; for coroutines on `thread`.
  net::asio::awaitable<Answer> call(net::IoThread& thread, std::string_view request, std::string id, std::string object,
                                    net::TimePoint deadline);

 private:
  friend class ExpectedCalls;
  using State = ExpectedCalls::State;

  std::mutex mutex_;
  std::unordered_map<std::string, std::shared_ptr<State>> waiting_;  // by request
};

}  // namespace balanceroute::proxy
