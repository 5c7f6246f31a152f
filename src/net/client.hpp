// client.hpp - requests to one HTTP/1.1 server over kept-alive connections.
//
// Leaves out retries after a response has begun, redirects (never followed) and cookies.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "net/error.hpp"
#include "net/http.hpp"
#include "net/io_thread.hpp"
#include "net/tls.hpp"

namespace balanceroute::net {

class Networks;

// Where a server listens. `host` is a name or an IP address, IPv6 without brackets.
struct Endpoint {
  std::string host;
  std::uint16_t port = 80;
  bool tls = false;

  std::string authority() const;  // as in a Host header
  std::string url() const;        // http://host:port or https://host:port
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};

// The same text without the user and the password that a URL may have, for messages.
std::string without_userinfo(std::string_view url);

enum class Schemes { http, http_and_https };

// Reads "http://host:port", or https if that is allowed, with an optional "/" at the end; the error says what is wrong
// with it.
std::expected<Endpoint, std::string> parse_http_url(std::string_view url, Schemes schemes = Schemes::http);

struct ClientOptions {
  Duration connect_timeout = std::chrono::seconds{2};
  // An idle connection is not used again after this. Engines (uvicorn) close theirs after 5 s; a request sent at that
  // very moment is lost, so the limit is below it. Zero switches reuse off.
  Duration idle_limit = std::chrono::seconds{4};
  std::size_t head_bytes = 64 * 1024;
  // What servers asked by TLS must show, and what is shown to them.
  std::shared_ptr<const TlsInUse> tls = nullptr;
  // Where servers may be, whatever a name turns out to stand for; none means anywhere.
  std::shared_ptr<const Networks> networks = nullptr;
};

class ClientConnection;
class HttpClient;

// HttpCall is one request under way and its response.
//   Use      read_body() until it returns an empty view, which is the proper end of the body.
//   Threads  only on the client's thread. Destroying a call that has not ended closes its connection, which is how an
//            engine learns that a request is cancelled.
class HttpCall {
 public:
  HttpCall(HttpCall&&) noexcept;
  HttpCall& operator=(HttpCall&&) noexcept;
  ~HttpCall();

  // Status and headers.
  const HttpResponse& head() const;
  // The next body bytes, valid until the next call. Closed or Reset when the body breaks off.
  asio::awaitable<std::expected<std::string_view, NetError>> read_body(TimePoint deadline);
  // The whole body; TooLarge above `limit` bytes.
  asio::awaitable<std::expected<std::string, NetError>> read_all(std::size_t limit, TimePoint deadline);

 private:
  friend class HttpClient;
  HttpCall(HttpClient& client, std::unique_ptr<ClientConnection> connection);

  HttpClient* client_;
  std::unique_ptr<ClientConnection> connection_;
};

// HttpClient keeps the connections of one I/O thread to one endpoint.
//   Threads  only on `thread`. Must outlive its calls.
class HttpClient {
 public:
  HttpClient(IoThread& thread, Endpoint endpoint, ClientOptions options);
  ~HttpClient();
  HttpClient(const HttpClient&) = delete;
  HttpClient& operator=(const HttpClient&) = delete;

  // Sends a request and waits for the head of the response. A kept connection that turns out to be dead before one
  // byte of response has come is replaced by a fresh one, once: the server cannot have answered on it.
  // Host and Content-Length are added.
  asio::awaitable<std::expected<HttpCall, NetError>> send(const HttpRequest& request, TimePoint deadline);

  const Endpoint& endpoint() const { return endpoint_; }
  std::size_t idle_connections() const { return idle_.size(); }

 private:
  friend class HttpCall;
  asio::awaitable<std::expected<std::unique_ptr<ClientConnection>, NetError>> connect(TimePoint deadline);
  asio::awaitable<std::expected<void, NetError>> secure(ClientConnection& connection, const std::string& doing,
                                                        TimePoint deadline);
  asio::awaitable<std::expected<void, NetError>> exchange_heads(ClientConnection& connection,
                                                                const HttpRequest& request, TimePoint deadline);
  std::unique_ptr<ClientConnection> take_idle();
  void give_back(std::unique_ptr<ClientConnection> connection);

  IoThread& thread_;
  Endpoint endpoint_;
  ClientOptions options_;
  std::vector<std::unique_ptr<ClientConnection>> idle_;  // most recently used last
};

}  // namespace balanceroute::net
