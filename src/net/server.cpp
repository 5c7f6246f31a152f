#include "net/server.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/ip/v6_only.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <set>
#include <string>
#include <utility>

#include "net/connection.hpp"
#include "net/task_group.hpp"

namespace balanceroute::net {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr Duration kAcceptPause = std::chrono::milliseconds{100};
constexpr int kBacklog = 4096;
constexpr Duration kStopTime = std::chrono::seconds{10};

std::string response_head(const HttpResponse& response, std::string_view framing, bool close) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " ";
  head.append(reason_phrase(response.status)).append("\r\n");
  for (const auto& [name, value] : response.headers) head.append(name).append(": ").append(value).append("\r\n");
  head.append(framing);
  if (close) head.append("Connection: close\r\n");
  return head.append("\r\n");
}

std::string failure_text(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

// The connections of one I/O thread.
struct HttpServer::ThreadState {
  ThreadState(IoThread& io, TaskGroup::OnFailure on_failure) : thread{io}, tasks{io, std::move(on_failure)} {}
  IoThread& thread;
  TaskGroup tasks;
  std::set<Connection*> connections;
};

// Listener accepts on one address until it is closed.
class HttpServer::Listener {
 public:
  Listener(HttpServer& server, IoThread& thread)
      : server_{server}, thread_{thread}, acceptor_{thread.context()}, pause_{thread.timers()} {}

  std::expected<std::uint16_t, NetError> bind(const std::string& host, std::uint16_t port) {
    error_code failure;
    const auto address = asio::ip::make_address(host, failure);
    const std::string doing = "listen on " + host + ":" + std::to_string(port);
    if (failure) return std::unexpected(NetError{NetFault::Resolve, doing + ": not an IP address"});
    const auto opened = open({address, port}, doing);
    if (!opened) return std::unexpected(opened.error());
    bound_ = acceptor_.local_endpoint();
    return bound_.port();
  }

  // Where it was bound before it was closed.
  std::expected<void, NetError> bind_again() {
    return open(bound_, "listen again on port " + std::to_string(bound_.port()));
  }

  void accept_next() {
    if (!acceptor_.is_open()) return;
    if (server_.options_.max_connections > 0 && server_.open_connections() >= server_.options_.max_connections) {
      pause_then_accept("as many connections are open as may be");
      return;
    }
    acceptor_.async_accept([this](const error_code& failure, Socket socket) { accepted(failure, std::move(socket)); });
  }

  void close() {
    error_code ignored;
    acceptor_.close(ignored);
    pause_.cancel();
  }

  IoThread& thread() { return thread_; }

 private:
  std::expected<void, NetError> open(const tcp::endpoint& endpoint, const std::string& doing) {
    error_code failure;
    acceptor_.open(endpoint.protocol(), failure);
    if (!failure) acceptor_.set_option(tcp::acceptor::reuse_address{true}, failure);
    if (!failure) acceptor_.bind(endpoint, failure);
    if (!failure) acceptor_.listen(kBacklog, failure);
    if (failure) return std::unexpected(NetError{NetFault::Connect, doing + ": " + failure.message()});
    return {};
  }

  void accepted(const error_code& failure, Socket socket) {
    if (failure == asio::error::operation_aborted) return;
    if (failure) {  // out of descriptors or memory: wait for some to come back instead of spinning
      pause_then_accept(failure.message());
      return;
    }
    if (!acceptor_.is_open()) return;  // closed since: the client came as the server was told to accept no more
    take(std::move(socket));
    accept_next();
  }

  void take(Socket socket) {
    if (std::exchange(paused_, false)) server_.options_.log_failure("accept: goes on");
    Arrival arrival{.socket = -1, .ipv6 = bound_.address().is_v6(), .address = {}};
    if (server_.options_.max_connections_per_address > 0) {
      error_code gone;
      const auto client = socket.remote_endpoint(gone);
      if (gone) return;
      arrival.address = client.address().to_string();
      if (!server_.count_in(arrival.address)) return;
    }
    arrival.socket = socket.release();
    server_.hand_out(std::move(arrival));
  }

  void pause_then_accept(const std::string& why) {
    if (!std::exchange(paused_, true)) server_.options_.log_failure("accept: " + why + ", pausing");
    pause_.arm(thread_.now() + kAcceptPause, [this] { accept_next(); });
  }

  HttpServer& server_;
  IoThread& thread_;
  tcp::acceptor acceptor_;
  tcp::endpoint bound_;
  Timer pause_;
  bool paused_ = false;
};

HttpServer::HttpServer(IoThreads& threads, ServerOptions options, HttpHandler handler)
    : threads_{threads}, options_{std::move(options)}, handler_{std::move(handler)} {
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    states_.push_back(std::make_unique<ThreadState>(
        threads_.at(i), [this](const std::exception_ptr& failure) { options_.log_failure(failure_text(failure)); }));
  }
}

HttpServer::~HttpServer() {
  stop();
}

std::expected<std::uint16_t, NetError> HttpServer::listen(const std::string& host, std::uint16_t port) {
  auto listener = std::make_unique<Listener>(*this, threads_.at(0));
  const auto bound = listener->bind(host, port);
  if (!bound) return bound;
  Listener* accepting = listeners_.emplace_back(std::move(listener)).get();
  accepting->thread().post([accepting] { accepting->accept_next(); });
  return bound;
}

void HttpServer::hand_out(Arrival arrival) {
  ThreadState& state = *states_[turn_++ % states_.size()];
  open_.fetch_add(1, std::memory_order_relaxed);
  state.thread.post([this, &state, arrival = std::move(arrival)]() mutable {
    state.tasks.spawn(serve(state.thread, std::move(arrival)));
  });
}

asio::awaitable<void> HttpServer::serve(IoThread& thread, Arrival arrival) {
  const auto state = std::ranges::find_if(states_, [&](const auto& one) { return &one->thread == &thread; });
  ThreadState& mine = **state;
  {
    const auto connection = std::make_shared<Connection>(
        *this, thread, mine.tasks, Socket{thread.context(), arrival.ipv6 ? tcp::v6() : tcp::v4(), arrival.socket});
    mine.connections.insert(connection.get());
    co_await connection->run();
    mine.connections.erase(connection.get());
    connection->close();
  }
  connection_ended(arrival.address);
}

bool HttpServer::count_in(const std::string& address) {
  const std::scoped_lock lock{addresses_mutex_};
  std::size_t& count = connections_of_[address];
  if (count >= options_.max_connections_per_address) return false;
  ++count;
  return true;
}

void HttpServer::connection_ended(const std::string& address) {
  if (!address.empty()) {
    const std::scoped_lock lock{addresses_mutex_};
    const auto counted = connections_of_.find(address);
    if (--counted->second == 0) connections_of_.erase(counted);
  }
  const std::scoped_lock lock{idle_mutex_};
  if (open_.fetch_sub(1, std::memory_order_relaxed) == 1) idle_.notify_all();
}

void HttpServer::pause_accepting() {
  for (const auto& listener : listeners_) listener->close();
}

std::expected<void, NetError> HttpServer::resume_accepting() {
  for (const auto& listener : listeners_) {
    const auto bound = listener->bind_again();
    if (!bound) return bound;
    listener->accept_next();
  }
  return {};
}

void HttpServer::cut_connections() {
  for (const auto& state : states_) state->tasks.cancel_all();
}

void HttpServer::drain() {
  draining_ = true;
  for (const auto& listener : listeners_) listener->thread().call([&] { listener->close(); });
  for (const auto& state : states_) {
    state->thread.call([&] {
      for (Connection* connection : state->connections) connection->close_when_idle();
    });
  }
}

bool HttpServer::wait_until_idle(Duration longest) {
  std::unique_lock lock{idle_mutex_};
  return idle_.wait_for(lock, longest, [this] { return open_connections() == 0; });
}

void HttpServer::stop() {
  drain();
  for (const auto& state : states_) state->thread.call([&] { state->tasks.cancel_all(); });
  wait_until_idle(kStopTime);
  // The last connection has gone; its task ends in the same turn of its thread's loop or the next.
  for (const auto& state : states_) {
    bool ended = false;
    while (!ended && open_connections() == 0) state->thread.call([&] { ended = state->tasks.size() == 0; });
  }
}

HttpExchange::HttpExchange(Connection& connection, HttpRequest request)
    : connection_{connection}, request_{std::move(request)} {}

IoThread& HttpExchange::thread() {
  return connection_.thread();
}
std::string HttpExchange::peer() const {
  return connection_.peer();
}
bool HttpExchange::client_left() const {
  return connection_.client_left();
}

asio::awaitable<void> HttpExchange::respond(HttpResponse response) {
  started_ = true;
  const std::string length = "Content-Length: " + std::to_string(response.body.size()) + "\r\n";
  std::string message = response_head(response, length, connection_.will_close());
  if (request_.method != "HEAD") message.append(response.body);
  connection_.send(message);
  const WriteStatus status = co_await connection_.wait_for_room(0);
  finished_ = status == WriteStatus::Ok;
}

void HttpExchange::start(const HttpResponse& head) {
  started_ = true;
  chunked_ = !request_.http_1_0;
  if (!chunked_) connection_.close_after_answer();
  const std::string_view framing = chunked_ ? "Transfer-Encoding: chunked\r\n" : "";
  connection_.send(response_head(head, framing, connection_.will_close()));
}

WriteStatus HttpExchange::write(std::string_view bytes) {
  if (bytes.empty()) return WriteStatus::Ok;
  return chunked_ ? connection_.send_chunk(bytes) : connection_.send(bytes);
}

asio::awaitable<WriteStatus> HttpExchange::drained() {
  return connection_.wait_for_room(connection_.options().write_buffer_bytes / 2);
}

void HttpExchange::reset() {
  connection_.reset();
}

asio::awaitable<WriteStatus> HttpExchange::flushed() {
  return connection_.wait_for_room(0);
}

asio::awaitable<void> HttpExchange::finish() {
  if (chunked_) connection_.send("0\r\n\r\n");
  const WriteStatus status = co_await connection_.wait_for_room(0);
  finished_ = status == WriteStatus::Ok;
}

std::size_t connections_for_descriptors() {
  // For listeners, loops, files and probes; and the second worker's connection that some dialects need.
  constexpr std::size_t kOthers = 64;
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur <= 2 * kOthers) return 1;
  return (limit.rlim_cur - kOthers) / 2;
}

std::size_t raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  return limit.rlim_cur;
}

}  // namespace balanceroute::net
