// stream.hpp - bytes on a connected socket, as they are or within TLS.
//
// Private to src/net. Reads and writes never block; whoever gets would_block waits for the socket and tries again,
// which is what Asio does inside for plaintext, and all that TLS needs.
#pragma once

#include <array>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "net/io_thread.hpp"
#include "net/tls_session.hpp"

namespace balanceroute::net {

// Stream owns a socket and, once TLS has begun, its session.
//   Cost     plaintext: one branch a call.
//   Threads  that of the socket.
class Stream {
 public:
  using Socket = asio::ip::tcp::socket;
  using WaitType = Socket::wait_type;
  using ErrorCode = boost::system::error_code;

  explicit Stream(Socket socket) : socket_{std::move(socket)} {}

  Socket& socket() { return socket_; }
  const Socket& socket() const { return socket_; }
  // After connecting: no delay, no blocking.
  void prepare();

  void begin_tls(std::unique_ptr<TlsSession> session) { tls_ = std::move(session); }
  void end_tls() { tls_.reset(); }
  const TlsSession* tls() const { return tls_.get(); }
  // The error that ended it, or none. The socket's cancel() ends it too.
  asio::awaitable<ErrorCode> handshake();

  std::size_t read_some(asio::mutable_buffer into, ErrorCode& failure);
  // Of the parts in their order.
  std::size_t write_some(std::span<const asio::const_buffer> parts, ErrorCode& failure);
  // What to wait for when the last read or write would have blocked.
  WaitType read_wait() const { return tls_ && tls_->read_wants_write() ? Socket::wait_write : Socket::wait_read; }
  WaitType write_wait() const { return tls_ && tls_->write_wants_read() ? Socket::wait_read : Socket::wait_write; }

  // Whether the peer neither closed nor sent what nobody asked for.
  bool is_idle();
  // Nothing more is sent; a TLS peer is told so.
  void shutdown_send();

 private:
  Socket socket_;
  std::unique_ptr<TlsSession> tls_;
};

}  // namespace balanceroute::net
