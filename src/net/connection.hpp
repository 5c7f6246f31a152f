// connection.hpp - one client connection of HttpServer: reads requests, watches for a client that leaves, writes.
//
// Private to src/net.
#pragma once

#include <boost/asio/buffer.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "net/server.hpp"
#include "net/stream.hpp"
#include "net/task_group.hpp"

namespace balanceroute::net {

using Socket = asio::ip::tcp::socket;

// Connection owns the socket of one client.
//   Threads  everything on `thread`.
class Connection : public std::enable_shared_from_this<Connection> {
 public:
  Connection(HttpServer& server, IoThread& thread, TaskGroup& tasks, Socket socket);

  // Serves requests until the client or the server ends the connection.
  asio::awaitable<void> run();
  // Ends the connection now if it waits for a request, else after the running one.
  void close_when_idle();

  IoThread& thread() { return thread_; }
  const ServerOptions& options() const { return server_.options_; }
  std::string peer() const;
  bool client_left() const { return client_left_; }
  bool will_close() const { return closing_ || server_.draining(); }
  void close_after_answer() { closing_ = true; }
  void close();
  // Breaks the connection so that the peer sees a reset.
  void reset();

  // Sends now what the socket takes, keeps the rest.
  WriteStatus send(std::string_view bytes);
  WriteStatus send_chunk(std::string_view bytes);
  asio::awaitable<WriteStatus> wait_for_room(std::size_t pending_at_most);

 private:
  // Whether requests can be read.
  asio::awaitable<bool> secure();
  asio::awaitable<std::expected<HttpRequest, int>> read_request();
  asio::awaitable<bool> read_more(TimePoint deadline);
  bool receive(boost::system::error_code& failure);
  asio::awaitable<void> handle(HttpRequest request);
  asio::awaitable<void> run_handler(HttpExchange& exchange, Event& done);
  asio::awaitable<void> watch_client(const Event& done);
  asio::awaitable<void> refuse(int status, std::string_view detail);
  asio::awaitable<void> linger();
  std::size_t pending() const { return queued_.size() + in_flight_.size() - in_flight_sent_; }
  WriteStatus status() const;
  std::expected<std::size_t, WriteStatus> send_now(std::span<const asio::const_buffer> parts);
  // Behind what waits already; flush() when all parts of a message are there.
  void keep(std::string_view bytes) { queued_.append(bytes); }
  void flush();
  void send_when_writable();
  void on_writable(boost::system::error_code failure);
  void break_off();

  HttpServer& server_;
  IoThread& thread_;
  TaskGroup& tasks_;
  Stream stream_;
  std::string input_;      // received, not yet used
  std::string in_flight_;  // being sent
  std::size_t in_flight_sent_ = 0;
  std::string queued_;  // to be sent after it
  bool broken_ = false;
  bool client_left_ = false;
  bool closing_ = false;
  bool waiting_for_request_ = false;
  Event room_;
  Timer deadline_;
  asio::cancellation_signal watch_;
};

}  // namespace balanceroute::net
