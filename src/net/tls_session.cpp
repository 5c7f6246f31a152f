#include "net/tls_session.hpp"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/socket.h>

#include <algorithm>
#include <boost/asio/error.hpp>
#include <cerrno>
#include <limits>
#include <utility>

namespace balanceroute::net {

namespace {

namespace error = boost::asio::error;
using boost::system::error_code;

int to_int(std::size_t size) {
  return static_cast<int>(std::min<std::size_t>(size, std::numeric_limits<int>::max()));
}

// OpenSSL's own socket BIO writes in a way that raises SIGPIPE when the peer has gone.
int socket_of(BIO* bio) {
  return *static_cast<int*>(BIO_get_data(bio));
}

int write_socket(BIO* bio, const char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto sent = ::send(socket_of(bio), bytes, static_cast<std::size_t>(size), MSG_NOSIGNAL);
  if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_socket(BIO* bio, char* bytes, int size) {
  BIO_clear_retry_flags(bio);
  const auto received = ::recv(socket_of(bio), bytes, static_cast<std::size_t>(size), 0);
  if (received < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(received);
}

long control_socket(BIO*, int command, long, void*) {
  return command == BIO_CTRL_FLUSH ? 1 : 0;
}

// Kept until the process ends: sessions on any thread may use it.
const BIO_METHOD* socket_method() {
  static const BIO_METHOD* const method = [] {
    BIO_METHOD* made = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "socket without SIGPIPE");
    BIO_meth_set_write(made, write_socket);
    BIO_meth_set_read(made, read_socket);
    BIO_meth_set_ctrl(made, control_socket);
    return made;
  }();
  return method;
}

}  // namespace

TlsSession::TlsSession(std::shared_ptr<const TlsContext> context, int socket)
    : context_{std::move(context)}, native_{SSL_new(context_->native())}, socket_{socket} {
  BIO* bio = BIO_new(socket_method());
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(native_, bio, bio);
}

TlsSession::~TlsSession() {
  SSL_free(native_);
}

std::unique_ptr<TlsSession> TlsSession::accept(std::shared_ptr<const TlsContext> context, int socket) {
  std::unique_ptr<TlsSession> session{new TlsSession{std::move(context), socket}};
  SSL_set_accept_state(session->native_);
  return session;
}

std::unique_ptr<TlsSession> TlsSession::connect(std::shared_ptr<const TlsContext> context, int socket,
                                                const std::string& name) {
  std::unique_ptr<TlsSession> session{new TlsSession{std::move(context), socket}};
  SSL* native = session->native_;
  SSL_set_connect_state(native);
  if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(native), name.c_str()) != 1) {
    SSL_set_hostflags(native, X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS);
    SSL_set1_host(native, name.c_str());
    // What SSL_set_tlsext_host_name() is, without the cast of C in that macro.
    SSL_ctrl(native, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, const_cast<char*>(name.c_str()));
  }
  return session;
}

error_code TlsSession::handshake() {
  ERR_clear_error();
  const error_code failure = outcome(SSL_do_handshake(native_), SSL_ERROR_WANT_READ, read_wants_write_);
  established_ = !failure;
  return failure;
}

std::size_t TlsSession::read_some(void* bytes, std::size_t size, error_code& failure) {
  ERR_clear_error();
  const int count = SSL_read(native_, bytes, to_int(size));
  failure = outcome(count, SSL_ERROR_WANT_READ, read_wants_write_);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

std::size_t TlsSession::write_some(const void* bytes, std::size_t size, error_code& failure) {
  ERR_clear_error();
  const int count = SSL_write(native_, bytes, to_int(size));
  failure = outcome(count, SSL_ERROR_WANT_WRITE, write_wants_read_);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

bool TlsSession::is_idle() {
  ERR_clear_error();
  char byte = 0;
  const int count = SSL_peek(native_, &byte, 1);  // takes what is no content, such as session tickets
  return count <= 0 && SSL_get_error(native_, count) == SSL_ERROR_WANT_READ;
}

void TlsSession::say_end() {
  if (!std::exchange(established_, false)) return;
  ERR_clear_error();
  SSL_shutdown(native_);
  ERR_clear_error();
}

error_code TlsSession::outcome(int result, int usual, bool& turned) {
  turned = false;
  if (result > 0) return {};
  const int cause = SSL_get_error(native_, result);
  if (cause == SSL_ERROR_WANT_READ || cause == SSL_ERROR_WANT_WRITE) {
    turned = cause != usual;
    return error::would_block;
  }
  established_ = false;
  if (cause == SSL_ERROR_ZERO_RETURN) return error::eof;
  explain();
  return error::connection_reset;
}

void TlsSession::explain() {
  const unsigned long cause = ERR_peek_last_error();
  const int reason = ERR_GET_REASON(cause);
  met_plain_http_ = reason == SSL_R_HTTP_REQUEST || reason == SSL_R_HTTPS_PROXY_REQUEST;
  const long verified = SSL_get_verify_result(native_);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED && verified != X509_V_OK) {
    reason_ = X509_verify_cert_error_string(verified);
  } else if (const char* words = cause == 0 ? nullptr : ERR_reason_error_string(cause)) {
    reason_ = words;
  } else {
    reason_ = "the connection broke";
  }
  ERR_clear_error();
}

}  // namespace balanceroute::net
