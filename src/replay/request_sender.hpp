// request_sender.hpp - one request of a replay: send it, again if need be, and read its answer to the end.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>

#include "core/units.hpp"
#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "replay/answer_check.hpp"
#include "replay/outcome.hpp"
#include "replay/replay_params.hpp"

namespace balanceroute::replay {

// One request as it is to be sent.
struct PlannedRequest {
  net::TimePoint due{};
  Tokens prompt;
  Tokens output;
  std::span<const std::int64_t> prefix_blocks;
  std::uint64_t seed = 0;
  std::optional<net::TimePoint> leaves{};  // when its client leaves, whatever it has
  std::function<void()> on_first_token = [] {};
};

// RequestSender sends requests to one server and asks all of them for one model.
//   Retries  As the OpenAI SDKs do: after 408, 409, 429, 5xx and connections that fail before an answer begins, with
//            growing pauses.
//   Threads  only on `thread`.
class RequestSender {
 public:
  // `prefix` is what stands before the API's own paths, such as "/api".
  RequestSender(net::IoThread& thread, net::Endpoint endpoint, std::string prefix, const ReplayParams& params);

  // The model the server lists first.
  boost::asio::awaitable<std::expected<std::string, Fault>> first_model();
  void set_model(std::string model) { model_ = std::move(model); }

  // `outcome` is up to date whenever the coroutine waits, so that a cancelled one leaves what it had.
  boost::asio::awaitable<void> send(const PlannedRequest& planned, Outcome& outcome);

 private:
  struct Failure {
    Fault fault;
    bool may_retry = false;
  };
  using Attempt = std::expected<void, Failure>;

  [[nodiscard]] static std::unexpected<Failure> failure(Fault fault, bool may_retry = false);
  [[nodiscard]] net::HttpRequest http_request(const PlannedRequest& planned) const;
  boost::asio::awaitable<Attempt> attempt(const PlannedRequest& planned, net::TimePoint deadline, Outcome& outcome);
  boost::asio::awaitable<Attempt> read_refusal(net::HttpCall& call, net::TimePoint deadline);
  boost::asio::awaitable<Attempt> read_stream(net::HttpCall& call, const PlannedRequest& planned,
                                              net::TimePoint deadline, Outcome& outcome);
  boost::asio::awaitable<Attempt> read_whole(net::HttpCall& call, const PlannedRequest& planned,
                                             net::TimePoint deadline, Outcome& outcome);
  boost::asio::awaitable<void> pause(net::Duration length);

  net::IoThread& thread_;
  net::HttpClient client_;
  std::string prefix_;
  ReplayParams params_;
  std::string model_;
};

}  // namespace balanceroute::replay
