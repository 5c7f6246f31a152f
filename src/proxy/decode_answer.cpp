#include "proxy/decode_answer.hpp"

#include <utility>

#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

bool DecodeAnswer::is_stream() const {
  const auto type = head().headers.find("Content-Type");
  return head().status == 200 && type && type->starts_with("text/event-stream");
}

net::asio::awaitable<std::expected<void, net::NetError>> DecodeAnswer::begin(net::TimePoint deadline) {
  net::SseSplitter splitter;
  for (;;) {
    const auto bytes = co_await call_.read_body(deadline);
    if (!bytes) co_return std::unexpected(bytes.error());
    first_.append(*bytes);
    if (bytes->empty() || !is_stream() || shows_beginning(*bytes, splitter)) break;
  }
  begun_ = true;
  co_return std::expected<void, net::NetError>{};
}

bool DecodeAnswer::shows_beginning(std::string_view bytes, net::SseSplitter& splitter) {
  bool shown = false;
  std::string scratch;
  splitter.feed(bytes, [&](std::string_view event) {
    const std::string_view data = net::sse_data(event, scratch);
    if (shown || data.empty()) return;
    const StreamEvent read = read_stream_event(data);
    shown = !read.opens;
    failed_ = read.error && !read.refusal;
  });
  return shown;
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
