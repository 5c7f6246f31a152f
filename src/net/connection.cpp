#include "net/connection.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <charconv>
#include <utility>

#include "net/head_check.hpp"

namespace balanceroute::net {

namespace {

using boost::system::error_code;

constexpr std::size_t kReadBytes = 16 * 1024;
// What a client may send ahead while its request is being answered.
constexpr std::size_t kPipelineBytes = 64 * 1024;
constexpr std::size_t kLingerBytes = 16 * 1024 * 1024;
constexpr Duration kLingerTime = std::chrono::seconds{2};

}  // namespace

Connection::Connection(HttpServer& server, IoThread& thread, TaskGroup& tasks, Socket socket)
    : server_{server},
      thread_{thread},
      tasks_{tasks},
      socket_{std::move(socket)},
      room_{thread},
      deadline_{thread.timers()} {
  error_code ignored;
  socket_.set_option(asio::ip::tcp::no_delay{true}, ignored);
  socket_.non_blocking(true, ignored);
}

std::string Connection::peer() const {
  error_code failure;
  const auto endpoint = socket_.remote_endpoint(failure);
  return failure ? std::string{"unknown"} : endpoint.address().to_string();
}

asio::awaitable<void> Connection::run() {
  co_await asio::this_coro::throw_if_cancelled(false);  // an exchange must outlive its handler, whatever happens
  for (;;) {
    auto request = co_await read_request();
    if (!request) {
      if (request.error() == 0) co_return;
      co_await refuse(request.error(), "");
      co_return;
    }
    const bool keep_alive = request->keep_alive;
    co_await handle(std::move(*request));
    if (broken_ || client_left_ || !keep_alive || will_close()) break;
  }
  if (!broken_ && !client_left_) co_await linger();
}

void Connection::close_when_idle() {
  closing_ = true;
  if (waiting_for_request_) {
    error_code ignored;
    socket_.cancel(ignored);
  }
}

// The error is the status to refuse with, or 0 when there is nobody to answer; refuse() has then been called already
// where words are known.
asio::awaitable<std::expected<HttpRequest, int>> Connection::read_request() {
  RequestReader reader{options().limits};
  TimePoint deadline = thread_.now() + options().idle_timeout;
  bool head_started = false;
  std::size_t head_end = std::string::npos;
  while ((head_end = find_head_end(input_)) == std::string::npos) {
    if (input_.size() > options().limits.head_bytes) co_return std::unexpected(431);
    if (!input_.empty() && !head_started) {
      head_started = true;
      deadline = thread_.now() + options().head_timeout;
    }
    waiting_for_request_ = !head_started;
    if (waiting_for_request_ && will_close()) co_return std::unexpected(0);
    const bool more = co_await read_more(deadline);
    waiting_for_request_ = false;
    if (!more) co_return std::unexpected(head_started && !client_left_ && !broken_ ? 408 : 0);
  }
  if (head_end > options().limits.head_bytes) co_return std::unexpected(431);
  if (const auto checked = check_request_head(std::string_view{input_}.substr(0, head_end)); !checked) {
    co_await refuse(400, checked.error());
    co_return std::unexpected(0);
  }
  deadline = thread_.now() + options().body_timeout;
  bool continued = false;
  for (;;) {
    const auto used = reader.feed(input_);
    if (!used) {
      co_await refuse(used.error().fault == NetFault::TooLarge ? 413 : 400, used.error().detail);
      co_return std::unexpected(0);
    }
    input_.erase(0, *used);
    if (reader.done()) co_return std::move(reader.request());
    if (!continued && reader.head_done() && !options().wants_body(reader.request())) {
      HttpRequest head = std::move(reader.request());
      head.body.clear();
      head.keep_alive = false;
      co_return head;
    }
    if (reader.expects_continue() && !std::exchange(continued, true)) send("HTTP/1.1 100 Continue\r\n\r\n");
    const bool more = co_await read_more(deadline);
    if (!more) co_return std::unexpected(client_left_ || broken_ ? 0 : 408);
  }
}

// Appends to input_; false at the end of the client's bytes, on a break, or at the deadline.
asio::awaitable<bool> Connection::read_more(TimePoint deadline) {
  bool late = false;
  deadline_.arm(deadline, [this, &late] {
    late = true;
    error_code ignored;
    socket_.cancel(ignored);
  });
  const std::size_t before = input_.size();
  input_.resize(before + kReadBytes);
  error_code failure;
  const std::size_t count = co_await socket_.async_read_some(asio::buffer(input_.data() + before, kReadBytes),
                                                             asio::redirect_error(asio::use_awaitable, failure));
  deadline_.cancel();
  input_.resize(before + count);
  if (!failure) co_return true;
  client_left_ = failure == asio::error::eof;
  broken_ = !client_left_ && failure != asio::error::operation_aborted;
  co_return false;
}

asio::awaitable<void> Connection::handle(HttpRequest request) {
  if (!request.keep_alive) closing_ = true;
  HttpExchange exchange{*this, std::move(request)};
  Event done{thread_};
  const TaskGroup::Handle task = tasks_.spawn(run_handler(exchange, done));
  co_await watch_client(done);
  if (!done.is_set()) task.cancel();
  while (!done.is_set()) co_await done.wait();
  if (!exchange.finished()) break_off();
}

asio::awaitable<void> Connection::run_handler(HttpExchange& exchange, Event& done) {
  try {
    co_await server_.handler_(exchange);
  } catch (const boost::system::system_error& failure) {
    if (failure.code() != asio::error::operation_aborted) server_.options_.log_failure(failure.what());
  } catch (const std::exception& failure) {
    server_.options_.log_failure(failure.what());
  }
  done.set();
  watch_.emit(asio::cancellation_type::terminal);
}

// Reads while the handler runs, because a closed connection shows only to a reader.
asio::awaitable<void> Connection::watch_client(const Event& done) {
  while (!done.is_set() && input_.size() < kPipelineBytes) {
    std::array<char, 512> bytes;
    error_code failure;
    const std::size_t count = co_await socket_.async_read_some(
        asio::buffer(bytes),
        asio::bind_cancellation_slot(watch_.slot(), asio::redirect_error(asio::use_awaitable, failure)));
    input_.append(bytes.data(), count);
    if (failure == asio::error::operation_aborted) co_return;
    if (failure) {
      client_left_ = true;
      co_return;
    }
  }
}

asio::awaitable<void> Connection::refuse(int status, std::string_view detail) {
  closing_ = true;
  if (detail.empty()) detail = reason_phrase(status);
  HttpExchange exchange{*this, HttpRequest{}};
  co_await exchange.respond(server_.options_.error_response(status, detail));
  co_await linger();
}

// Closing a socket that still has unread input makes the kernel send a reset, which can destroy the answer on its way.
asio::awaitable<void> Connection::linger() {
  error_code ignored;
  socket_.shutdown(Socket::shutdown_send, ignored);
  const TimePoint deadline = thread_.now() + kLingerTime;
  for (std::size_t total = 0; total < kLingerBytes; total += input_.size()) {
    input_.clear();
    const bool more = co_await read_more(deadline);
    if (!more) break;
  }
}

WriteStatus Connection::status() const {
  if (broken_) return WriteStatus::Gone;
  return pending() > options().write_buffer_bytes ? WriteStatus::Full : WriteStatus::Ok;
}

WriteStatus Connection::send(std::string_view bytes) {
  const std::array parts{asio::const_buffer{bytes.data(), bytes.size()}};
  const auto sent = send_now(parts);
  if (!sent) return sent.error();
  keep(bytes.substr(*sent));
  return status();
}

WriteStatus Connection::send_chunk(std::string_view bytes) {
  std::array<char, 20> size;
  char* end = std::to_chars(size.data(), size.data() + 16, bytes.size(), 16).ptr;
  *end++ = '\r';
  *end++ = '\n';
  const std::string_view prefix{size.data(), static_cast<std::size_t>(end - size.data())};
  constexpr std::string_view kEnd = "\r\n";
  const std::array parts{asio::const_buffer{prefix.data(), prefix.size()},
                         asio::const_buffer{bytes.data(), bytes.size()}, asio::const_buffer{kEnd.data(), kEnd.size()}};
  auto sent = send_now(parts);
  if (!sent) return sent.error();
  for (std::string_view part : {prefix, bytes, kEnd}) {
    const std::size_t done = std::min(*sent, part.size());
    keep(part.substr(done));
    *sent -= done;
  }
  return status();
}

// How much the socket took at once: nothing while earlier bytes still wait, so that the order stays.
std::expected<std::size_t, WriteStatus> Connection::send_now(std::span<const asio::const_buffer> parts) {
  if (broken_) return std::unexpected(WriteStatus::Gone);
  if (pending() > 0) return 0;
  error_code failure;
  const std::size_t sent = socket_.write_some(parts, failure);
  if (failure == asio::error::would_block) return 0;
  if (failure) {
    client_left_ = true;
    break_off();
    return std::unexpected(WriteStatus::Gone);
  }
  return sent;
}

void Connection::keep(std::string_view bytes) {
  queued_.append(bytes);
  if (in_flight_.empty() && !queued_.empty()) flush();
}

// Sends what is in flight piece by piece, then what was queued meanwhile.
void Connection::flush() {
  if (in_flight_.empty()) in_flight_.swap(queued_);
  auto on_sent = [self = shared_from_this()](const error_code& failure, std::size_t sent) {
    self->in_flight_sent_ += sent;
    if (failure) self->broken_ = true;
    if (self->broken_) std::string{}.swap(self->queued_);
    if (self->broken_ || self->in_flight_sent_ == self->in_flight_.size()) {
      std::string{}.swap(self->in_flight_);
      self->in_flight_sent_ = 0;
    }
    self->room_.set();
    if (self->pending() > 0) self->flush();
  };
  socket_.async_write_some(asio::buffer(in_flight_.data() + in_flight_sent_, in_flight_.size() - in_flight_sent_),
                           std::move(on_sent));
}

asio::awaitable<WriteStatus> Connection::wait_for_room(std::size_t pending_at_most) {
  while (!broken_ && pending() > pending_at_most) {
    room_.reset();
    const WaitResult result = co_await room_.wait(thread_.now() + options().client_stall);
    if (result == WaitResult::Timeout) break_off();
    if (result == WaitResult::Cancelled) co_return WriteStatus::Gone;
  }
  co_return broken_ ? WriteStatus::Gone : WriteStatus::Ok;
}

void Connection::close() {
  broken_ = true;
  error_code ignored;
  socket_.close(ignored);
}

void Connection::reset() {
  error_code ignored;
  socket_.set_option(Socket::linger{true, 0}, ignored);  // close() then drops what is unsent and sends RST
  close();
}

void Connection::break_off() {
  broken_ = true;
  error_code ignored;
  socket_.shutdown(Socket::shutdown_both, ignored);
  socket_.cancel(ignored);
}

}  // namespace balanceroute::net
