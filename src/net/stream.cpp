#include "net/stream.hpp"

#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cerrno>
#include <cstring>

namespace balanceroute::net {

namespace {

// A record of TLS holds no more.
constexpr std::size_t kRecordBytes = 16 * 1024;

// The start of `parts`, as one piece: each write is a record of its own, and a system call.
asio::const_buffer joined(std::span<const asio::const_buffer> parts) {
  thread_local std::array<char, kRecordBytes> record;
  std::size_t size = 0;
  for (const asio::const_buffer& part : parts) {
    const std::size_t count = std::min(part.size(), record.size() - size);
    if (count > 0) std::memcpy(record.data() + size, part.data(), count);
    size += count;
  }
  return {record.data(), size};
}

}  // namespace

void Stream::prepare() {
  ErrorCode ignored;
  socket_.set_option(asio::ip::tcp::no_delay{true}, ignored);
  socket_.non_blocking(true, ignored);
}

asio::awaitable<Stream::ErrorCode> Stream::handshake() {
  for (;;) {
    ErrorCode failure = tls_->handshake();
    if (failure != asio::error::would_block) co_return failure;
    failure = {};
    co_await socket_.async_wait(read_wait(), asio::redirect_error(asio::use_awaitable, failure));
    if (failure) co_return failure;
  }
}

std::size_t Stream::read_some(asio::mutable_buffer into, ErrorCode& failure) {
  if (tls_) return tls_->read_some(into.data(), into.size(), failure);
  return socket_.read_some(asio::mutable_buffer{into}, failure);
}

std::size_t Stream::write_some(std::span<const asio::const_buffer> parts, ErrorCode& failure) {
  if (!tls_) return socket_.write_some(parts, failure);
  const asio::const_buffer bytes = parts.size() == 1 ? parts.front() : joined(parts);
  return tls_->write_some(bytes.data(), bytes.size(), failure);
}

bool Stream::is_idle() {
  if (tls_) return tls_->is_idle();
  char byte = 0;
  const auto count = ::recv(socket_.native_handle(), &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
}

void Stream::shutdown_send() {
  if (tls_) tls_->say_end();
  ErrorCode ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
}

}  // namespace balanceroute::net
