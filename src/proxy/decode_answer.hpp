// decode_answer.hpp - a decode worker's answer, of which the first bytes may have been read already.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "net/client.hpp"
#include "net/sse.hpp"

namespace balanceroute::proxy {

// DecodeAnswer reads one answer from its first byte to its last.
//   Use      as HttpCall: read() until it returns an empty view.
//   Threads  as HttpCall; destroying one that has not ended cancels the request.
class DecodeAnswer {
 public:
  explicit DecodeAnswer(net::HttpCall call) : call_{std::move(call)} {}

  [[nodiscard]] const net::HttpResponse& head() const { return call_.head(); }
  [[nodiscard]] bool is_stream() const;
  // Waits for the first bytes, of a stream for the first event that does more than name the role; the next read()
  // returns them.
  net::asio::awaitable<std::expected<void, net::NetError>> begin(net::TimePoint deadline);
  // After begin(): the worker could not do it, as its status says or, where that went out before it knew, an error
  // event in place of an answer.
  [[nodiscard]] bool failed_at_once() const { return failed_ || head().status >= 500; }
  net::asio::awaitable<std::expected<std::string_view, net::NetError>> read(net::TimePoint deadline);
  // The whole answer; TooLarge above `limit` bytes.
  net::asio::awaitable<std::expected<std::string, net::NetError>> read_all(std::size_t limit, net::TimePoint deadline);

 private:
  // Of the events so far; whether they tell how the answer begins.
  bool shows_beginning(std::string_view bytes, net::SseSplitter& splitter);

  net::HttpCall call_;
  std::string first_;
  bool begun_ = false;   // first_ waits for read()
  bool failed_ = false;  // the stream begins with an error
};

}  // namespace balanceroute::proxy
