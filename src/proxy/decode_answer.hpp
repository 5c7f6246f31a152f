// decode_answer.hpp - a decode worker's answer, of which the first bytes may have been read already.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "net/client.hpp"
#include "net/sse.hpp"

namespace balanceroute::proxy {

// DecodeAnswer reads one answer from its first byte to its last.
//   Use      begin() first; then take_whole(), or as HttpCall: read() until it returns an empty view.
//   Threads  as HttpCall; destroying one that has not ended cancels the request.
class DecodeAnswer {
 public:
  explicit DecodeAnswer(net::HttpCall call) : call_{std::move(call)} {}

  [[nodiscard]] const net::HttpResponse& head() const { return call_.head(); }
  [[nodiscard]] bool is_stream() const;
  // Waits until the answer is known to be one: of a stream that the client wants as one, for the first event that does
  // more than name the role; of any other, for all of it. 200 and nothing is broken off.
  net::asio::awaitable<std::expected<void, net::NetError>> begin(bool as_stream, net::TimePoint deadline);
  // After begin(): the worker could not do it, as its status says or, where that went out before it knew, an error
  // event in place of an answer.
  [[nodiscard]] bool failed_at_once() const { return first_error_ || head().status >= 500; }
  // What that event says; none if the answer began otherwise.
  [[nodiscard]] const std::optional<std::string>& first_error() const { return first_error_; }
  // What begin() has read, and then what comes.
  net::asio::awaitable<std::expected<std::string_view, net::NetError>> read(net::TimePoint deadline);
  // All of an answer that is not wanted as a stream, or is none.
  [[nodiscard]] std::string_view whole() const { return first_; }
  [[nodiscard]] std::string take_whole() { return std::exchange(first_, {}); }

 private:
  net::asio::awaitable<std::expected<void, net::NetError>> begin_stream(net::TimePoint deadline);
  net::asio::awaitable<std::expected<void, net::NetError>> begin_whole(net::TimePoint deadline);
  // Of the events so far; whether they tell how the answer begins.
  bool shows_beginning(std::string_view bytes, net::SseSplitter& splitter);

  net::HttpCall call_;
  std::string first_;
  bool begun_ = false;  // first_ waits for read()
  std::optional<std::string> first_error_;
};

}  // namespace balanceroute::proxy
