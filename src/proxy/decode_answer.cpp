#include "proxy/decode_answer.hpp"

#include <utility>

#include "proxy/failure.hpp"
#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::size_t kWholeAnswerBytes = 256 * 1024 * 1024;

}  // namespace

bool DecodeAnswer::is_stream() const {
  const auto type = head().headers.find("Content-Type");
  return head().status == 200 && type && type->starts_with("text/event-stream");
}

net::asio::awaitable<std::expected<void, net::NetError>> DecodeAnswer::begin(bool as_stream, net::TimePoint deadline) {
  if (auto none = without_answer(head().status)) co_return std::unexpected(*std::move(none));
  std::expected<void, net::NetError> result;
  if (as_stream && is_stream()) {
    result = co_await begin_stream(deadline);
  } else {
    result = co_await begin_whole(deadline);
  }
  begun_ = result.has_value();
  co_return result;
}

net::asio::awaitable<std::expected<void, net::NetError>> DecodeAnswer::begin_stream(net::TimePoint deadline) {
  net::SseSplitter splitter;
  for (;;) {
    const auto bytes = co_await call_.read_body(deadline);
    if (!bytes) co_return std::unexpected(bytes.error());
    if (bytes->empty()) {
      co_return std::unexpected(net::NetError{net::NetFault::Closed, "the stream ended before it had begun"});
    }
    first_.append(*bytes);
    if (shows_beginning(*bytes, splitter)) co_return std::expected<void, net::NetError>{};
  }
}

net::asio::awaitable<std::expected<void, net::NetError>> DecodeAnswer::begin_whole(net::TimePoint deadline) {
  auto whole = co_await call_.read_all(kWholeAnswerBytes, deadline);
  if (!whole) co_return std::unexpected(whole.error());
  if (whole->empty() && head().status == 200) {
    co_return std::unexpected(net::NetError{net::NetFault::Closed, "the worker answered 200 with an empty body"});
  }
  first_ = std::move(*whole);
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
    if (read.error && !read.refusal) first_error_ = read.error_message;
  });
  return shown;
}

net::asio::awaitable<std::expected<std::string_view, net::NetError>> DecodeAnswer::read(net::TimePoint deadline) {
  if (std::exchange(begun_, false)) co_return std::string_view{first_};
  std::string{}.swap(first_);
  co_return co_await call_.read_body(deadline);
}

}  // namespace balanceroute::proxy
