// decode_answer.hpp - a decode worker's answer, of which the first bytes may have been read already.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <expected>
#include <string>
#include <string_view>

#include "net/client.hpp"

namespace balanceroute::proxy {

// DecodeAnswer reads one answer from its first byte to its last.
//   Use      as HttpCall: read() until it returns an empty view.
//   Threads  as HttpCall; destroying one that has not ended cancels the request.
class DecodeAnswer {
 public:
  explicit DecodeAnswer(net::HttpCall call) : call_{std::move(call)} {}

  [[nodiscard]] const net::HttpResponse& head() const { return call_.head(); }
  // Waits for the first bytes, which the next read() returns.
  net::asio::awaitable<std::expected<void, net::NetError>> begin(net::TimePoint deadline);
  net::asio::awaitable<std::expected<std::string_view, net::NetError>> read(net::TimePoint deadline);
  // The whole answer; TooLarge above `limit` bytes.
  net::asio::awaitable<std::expected<std::string, net::NetError>> read_all(std::size_t limit, net::TimePoint deadline);

 private:
  net::HttpCall call_;
  std::string first_;
  bool begun_ = false;  // first_ waits for read()
};

}  // namespace balanceroute::proxy
