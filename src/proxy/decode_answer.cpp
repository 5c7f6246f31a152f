#include "proxy/decode_answer.hpp"

#include <utility>

namespace balanceroute::proxy {

net::asio::awaitable<std::expected<void, net::NetError>> DecodeAnswer::begin(net::TimePoint deadline) {
  const auto bytes = co_await call_.read_body(deadline);
  if (!bytes) co_return std::unexpected(bytes.error());
  first_ = *bytes;
  begun_ = true;
  co_return std::expected<void, net::NetError>{};
}

net::asio::awaitable<std::expected<std::string_view, net::NetError>> DecodeAnswer::read(net::TimePoint deadline) {
  if (std::exchange(begun_, false)) co_return std::string_view{first_};
  co_return co_await call_.read_body(deadline);
}

net::asio::awaitable<std::expected<std::string, net::NetError>> DecodeAnswer::read_all(std::size_t limit,
                                                                                       net::TimePoint deadline) {
  std::string body;
  for (;;) {
    const auto part = co_await read(deadline);
    if (!part) co_return std::unexpected(part.error());
    if (part->empty()) co_return body;
    body.append(*part);
    if (body.size() > limit) {
      co_return std::unexpected(net::NetError{net::NetFault::TooLarge, "read response: body too large"});
    }
  }
}

}  // namespace balanceroute::proxy
