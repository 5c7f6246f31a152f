// tls_session.hpp - TLS on one connected socket that does not block.
//
// OpenSSL works on the socket itself. Asio's ssl::stream is not used: it keeps 68 KiB of buffers a connection, which is
// more than a whole stream may take (docs/decisions/0017).
#pragma once

#include <boost/system/error_code.hpp>
#include <cstddef>
#include <memory>
#include <string>

#include "net/tls.hpp"

struct ssl_st;

namespace balanceroute::net {

// TlsSession is one side of a TLS connection.
//   Use      handshake() until it is no longer would_block, then read_some() and write_some(). After would_block wait
//   for
//            the socket to be readable, or writable where the session wants that, and try again; a write with at least
//            the same bytes.
//   Threads  only one at a time.
class TlsSession {
 public:
  static std::unique_ptr<TlsSession> accept(std::shared_ptr<const TlsContext> context, int socket);
  // The server must have a certificate for `name`, a host's name or an IP address.
  static std::unique_ptr<TlsSession> connect(std::shared_ptr<const TlsContext> context, int socket,
                                             const std::string& name);
  ~TlsSession();
  TlsSession(const TlsSession&) = delete;
  TlsSession& operator=(const TlsSession&) = delete;

  boost::system::error_code handshake();
  // eof when the peer said that it ends; an end without that word is connection_reset.
  std::size_t read_some(void* bytes, std::size_t size, boost::system::error_code& failure);
  std::size_t write_some(const void* bytes, std::size_t size, boost::system::error_code& failure);
  // Nothing has come that was not asked for.
  bool is_idle();
  // Says that we end; once, and without waiting.
  void say_end();
  // What the last handshake or read, and the last write, would have blocked for against expectation.
  bool read_wants_write() const { return read_wants_write_; }
  bool write_wants_read() const { return write_wants_read_; }
  // What went wrong, in words; empty if nothing did.
  const std::string& reason() const { return reason_; }
  // The other side speaks HTTP without TLS.
  bool met_plain_http() const { return met_plain_http_; }

 private:
  TlsSession(std::shared_ptr<const TlsContext> context, int socket);
  // `turned` becomes whether it waits for the other direction than usual, which is `usual` for SSL_get_error.
  boost::system::error_code outcome(int result, int usual, bool& turned);
  void explain();

  std::shared_ptr<const TlsContext> context_;
  ssl_st* native_;
  int socket_;
  bool read_wants_write_ = false;
  bool write_wants_read_ = false;
  bool met_plain_http_ = false;
  bool established_ = false;
  std::string reason_;
};

}  // namespace balanceroute::net
