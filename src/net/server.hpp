// server.hpp - an HTTP/1.1 server: connections, requests, answers and streams.
//
// Leaves out what is served (a handler decides) and how errors are worded (the owner passes a function). One acceptor
// hands sockets to the I/O threads in turn; a connection stays on its thread.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <condition_variable>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "net/error.hpp"
#include "net/http.hpp"
#include "net/http_reader.hpp"
#include "net/io_thread.hpp"
#include "net/tls.hpp"

namespace balanceroute::net {

class Connection;

// What became of bytes given to HttpExchange::write.
enum class WriteStatus {
  Ok,    // sent, or kept for sending
  Full,  // kept, and the client is behind: wait with drained() before writing more
  Gone,  // the connection is broken
};

// HttpExchange is one request and its answer, for the handler.
//   Use      respond() once, or start() once, then write() any number of times, then finish(). A handler that returns
//            before finish() breaks the connection, so that the client never takes half an answer for a whole one.
//   Threads  only on thread(). The handler is cancelled when the client closes its connection, and when the server
//            stops; destructors must give back what it holds.
class HttpExchange {
 public:
  HttpExchange(Connection& connection, HttpRequest request);

  HttpRequest& request() { return request_; }
  IoThread& thread();
  std::string peer() const;  // address of the client, for logs

  // A whole answer.
  asio::awaitable<void> respond(HttpResponse response);
  // The head of an answer of unknown length (chunked, or until close for HTTP/1.0). The body of `head` is not sent.
  void start(const HttpResponse& head);
  WriteStatus write(std::string_view bytes);
  // Returns when the client has taken enough; Gone after `client_stall` without progress, or on a broken connection.
  asio::awaitable<WriteStatus> drained();
  // Breaks the connection in the way of a process that died: the peer sees a reset, not an end.
  void reset();
  // Returns when everything written has been sent, or cannot be.
  asio::awaitable<WriteStatus> flushed();
  // Ends a started answer and waits until the client has it.
  asio::awaitable<void> finish();

  bool started() const { return started_; }
  bool finished() const { return finished_; }
  // True once the client has closed: the handler is being cancelled for that.
  bool client_left() const;

 private:
  Connection& connection_;
  HttpRequest request_;
  bool started_ = false;
  bool finished_ = false;
  bool chunked_ = false;
};

using HttpHandler = std::function<asio::awaitable<void>(HttpExchange&)>;

struct ServerOptions {
  HttpLimits limits;
  Duration head_timeout = std::chrono::seconds{10};  // from a request's first byte to the end of its head
  Duration body_timeout = std::chrono::seconds{60};  // for the whole body
  Duration idle_timeout = std::chrono::seconds{75};  // of a connection between requests
  Duration client_stall = std::chrono::seconds{60};  // without progress while bytes wait for a slow client
  std::size_t write_buffer_bytes = 1024 * 1024;      // kept for a slow client before write() says Full
  std::size_t max_connections = 0;                   // more wait to be accepted; 0: no limit of our own
  std::size_t max_connections_per_address = 0;       // more are closed at once; 0: no limit
  std::function<HttpResponse(int status, std::string_view detail)> error_response = [](int status, auto detail) {
    return text_response(status, std::string{detail} + "\n");
  };
  // Whether the handler wants the body that comes after such a head. If not it is asked at once, with the head alone,
  // and the connection is closed after its answer.
  std::function<bool(const HttpRequest& head)> wants_body = [](const HttpRequest&) { return true; };
  // Told of requests that no handler sees, because they cannot be read.
  std::function<void(int status, std::string_view detail, const std::string& peer)> refused = [](int, std::string_view,
                                                                                                 const std::string&) {};
  // Told why a client could not shake hands.
  std::function<void(std::string_view)> tls_failed = [](std::string_view) {};
  // Told about what has no request to report it: accept failures, exceptions that leave a handler.
  std::function<void(std::string_view)> log_failure = [](std::string_view) {};
};

// HttpServer accepts connections on one or more addresses and runs the handler for each request.
//   Threads  the public functions may be called from any thread that is not an I/O thread.
class HttpServer {
 public:
  HttpServer(IoThreads& threads, ServerOptions options, HttpHandler handler);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // For connections from now on; none means plaintext. Whether it is of other content than before.
  bool use_tls(std::shared_ptr<const TlsContext> context) { return tls_.replace(std::move(context)); }

  // Binds and starts to accept; port 0 takes any free port. Returns the bound port.
  std::expected<std::uint16_t, NetError> listen(const std::string& host, std::uint16_t port);
  // Refuses connections until resume_accepting(); those that are open stay. For code on the first I/O thread, as is
  // resume_accepting(), which tells when somebody else has taken the address meanwhile.
  void pause_accepting();
  std::expected<void, NetError> resume_accepting();
  // Cancels every handler and breaks every connection without waiting for their ends. For code on an I/O thread that
  // is the only one.
  void cut_connections();
  // Stops accepting and closes idle connections; requests that run go on, then their connections are closed.
  void drain();
  // Waits until no connection is left; false when `longest` passed first.
  bool wait_until_idle(Duration longest);
  // drain(), then cancels every handler and waits for them.
  void stop();

  std::size_t open_connections() const { return open_.load(std::memory_order_relaxed); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }

 private:
  friend class Connection;
  friend class HttpExchange;
  class Listener;
  struct ThreadState;

  // A socket that has been accepted, and the address of its client.
  struct Arrival {
    int socket;
    bool ipv6;
    std::string address;  // empty where nobody counts
  };

  void hand_out(Arrival arrival);
  asio::awaitable<void> serve(IoThread& thread, Arrival arrival);
  // Whether the address may have one more connection, which then counts.
  bool count_in(const std::string& address);
  void connection_ended(const std::string& address);

  IoThreads& threads_;
  ServerOptions options_;
  HttpHandler handler_;
  TlsInUse tls_;
  std::vector<std::unique_ptr<Listener>> listeners_;
  std::vector<std::unique_ptr<ThreadState>> states_;  // one for each I/O thread
  std::size_t turn_ = 0;
  std::atomic<std::size_t> open_{0};
  std::atomic<bool> draining_{false};
  std::mutex idle_mutex_;
  std::condition_variable idle_;
  std::mutex addresses_mutex_;
  std::unordered_map<std::string, std::size_t> connections_of_;  // by address, where there is a limit for each
};

// Raises the soft limit of open descriptors to the hard limit and returns it.
std::size_t raise_descriptor_limit();

// As many client connections as descriptors allow when each may need another one, to a worker.
std::size_t connections_for_descriptors();

}  // namespace balanceroute::net
