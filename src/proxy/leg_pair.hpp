// leg_pair.hpp - a prefill and a decode leg that run at the same time.
//
// Each leg is a background task that shares what it needs and nothing of the request that started it, so that the
// request may end first: its guards then cancel the legs.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <memory>
#include <optional>
#include <string>

#include "net/event.hpp"
#include "net/task_group.hpp"
#include "proxy/callback_board.hpp"
#include "proxy/continuation.hpp"
#include "proxy/decode_answer.hpp"
#include "proxy/dialects/dialect.hpp"
#include "proxy/prefill_dispatcher.hpp"
#include "proxy/prefill_leg.hpp"
#include "proxy/request_body.hpp"

namespace balanceroute::proxy {

class Fleet;

// What both legs and the request see.
struct LegPair {
  explicit LegPair(net::IoThread& thread) : changed{thread} {}

  net::Event changed;  // set with either of the two below
  std::optional<PrefillOutcome> prefill;
  std::optional<std::expected<DecodeAnswer, net::NetError>> decode;  // has begun
};

// The claim of a request's prefill, which the leg may outlive.
using SharedClaim = std::shared_ptr<std::optional<PrefillClaim>>;

// RunningLeg cancels a background task at its end, unless it was let go.
class RunningLeg {
 public:
  explicit RunningLeg(net::TaskGroup::Handle task) : task_{std::move(task)} {}
  ~RunningLeg() {
    if (!free_) task_.cancel();
  }
  RunningLeg(const RunningLeg&) = delete;
  RunningLeg& operator=(const RunningLeg&) = delete;

  void let_go() { free_ = true; }

 private:
  net::TaskGroup::Handle task_;
  bool free_ = false;
};

// Sends the request and waits until the answer, wanted as a stream or not, has begun.
net::asio::awaitable<void> run_decode(std::shared_ptr<LegPair> pair, net::HttpClient& worker, net::HttpRequest request,
                                      bool as_stream, net::TimePoint deadline);

// Sends the request to the instance that the claim was given.
net::asio::awaitable<void> run_prefill(std::shared_ptr<LegPair> pair, SharedClaim claim, net::HttpClient& engine,
                                       net::HttpRequest request, Tokens prompt, net::TimePoint deadline);

// What a prefill needs that a decode engine will ask for.
struct PrefillOnCall {
  net::IoThread& thread;
  std::size_t thread_index;
  Fleet& fleet;
  std::unique_ptr<ExpectedCalls> calls;
  net::HttpRequest request;  // with the client's body
  GenerationKind kind;
  GenerationBody body;
  Continuation so_far;
  Tokens prompt;  // of all prompts, estimated
  std::int64_t retries;
  net::TimePoint deadline;
};

// Waits for the decode engine's calls, then takes an instance and sends it the request with what the calls carried.
net::asio::awaitable<void> run_prefill_on_call(std::shared_ptr<LegPair> pair, SharedClaim claim, PrefillOnCall job);

}  // namespace balanceroute::proxy
