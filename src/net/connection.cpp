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
      stream_{std::move(socket)},
      room_{thread},
      deadline_{thread.timers()} {
  stream_.prepare();
}

std::string Connection::peer() const {
  error_code failure;
  const auto endpoint = stream_.socket().remote_endpoint(failure);
  return failure ? std::string{"unknown"} : endpoint.address().to_string();
}

asio::awaitable<void> Connection::run() {
  co_await asio::this_coro::throw_if_cancelled(false);  // an exchange must outlive its handler, whatever happens
  const bool readable = co_await secure();
  if (!readable) co_return;
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

// Nobody may take the time to shake hands for ever, nor to say nothing at all.
asio::awaitable<bool> Connection::secure() {
  auto context = server_.tls_.current();
  if (!context) co_return true;
  stream_.begin_tls(TlsSession::accept(std::move(context), stream_.socket().native_handle()));
  deadline_.arm(thread_.now() + options().head_timeout, [this] {
    error_code ignored;
    stream_.socket().cancel(ignored);
  });
  const error_code failure = co_await stream_.handshake();
  deadline_.cancel();
  if (!failure) co_return true;
  const std::string reason = failure == asio::error::operation_aborted ? "it took too long" : stream_.tls()->reason();
  options().tls_failed("TLS with " + peer() + ": " + reason);
  if (stream_.tls()->met_plain_http()) {
    stream_.end_tls();
    co_await refuse(400, "only TLS is spoken here, expected https://");
  }
  co_return false;
}

void Connection::close_when_idle() {
  closing_ = true;
  if (waiting_for_request_) {
    error_code ignored;
    stream_.socket().cancel(ignored);
  }
}

// The error is the status to refuse with, or 0 when there is nobody to answer; refuse() has then been called already
// where words are known.
asio::awaitable<std::expected<HttpRequest, int>> Connection::read_request() {
  RequestReader reader{options().limits};
  TimePoint deadline = thread_.now() + options().idle_timeout;
  bool head_started = false;
  std::size_t head_end = std::string::npos;
  std::size_t known = 0;
  while ((head_end = find_head_end(input_, known)) == std::string::npos) {
    if (input_.size() > options().limits.head_bytes) co_return std::unexpected(431);
    if (const auto checked = check_beginning(input_, known); !checked) {
      co_await refuse(checked.error().status, checked.error().detail);
      co_return std::unexpected(0);
    }
    known = input_.size();
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
  const std::string_view raw_head = std::string_view{input_}.substr(0, head_end);
  if (const auto checked = check_request_head(raw_head, options().limits.head_fields); !checked) {
    co_await refuse(checked.error().status, checked.error().detail);
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
    if (reader.done()) {
      if (input_.empty()) std::string{}.swap(input_);  // while its answer streams, a connection holds no buffer
      co_return std::move(reader.request());
    }
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
    stream_.socket().cancel(ignored);
  });
  error_code failure;
  while (!receive(failure) && !failure) {
    co_await stream_.socket().async_wait(stream_.read_wait(), asio::redirect_error(asio::use_awaitable, failure));
    if (failure) break;
  }
  deadline_.cancel();
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

// Appends to input_ what has come; false when nothing has, or with the error that ended it.
bool Connection::receive(error_code& failure) {
  thread_local std::array<char, kReadBytes> buffer;  // so that one who waits owns none
  const std::size_t count = stream_.read_some(asio::buffer(buffer), failure);
  input_.append(buffer.data(), count);
  if (failure == asio::error::would_block) failure = {};
  return count > 0;
}

// Reads while the handler runs, because a closed connection shows only to a reader.
asio::awaitable<void> Connection::watch_client(const Event& done) {
  while (!done.is_set() && input_.size() < kPipelineBytes) {
    error_code failure;
    if (!receive(failure) && !failure) {
      co_await stream_.socket().async_wait(
          stream_.read_wait(),
          asio::bind_cancellation_slot(watch_.slot(), asio::redirect_error(asio::use_awaitable, failure)));
    }
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
  options().refused(status, detail, peer());
  HttpExchange exchange{*this, HttpRequest{}};
  co_await exchange.respond(server_.options_.error_response(status, detail));
  co_await linger();
}

// Closing a socket that still has unread input makes the kernel send a reset, which can destroy the answer on its way.
asio::awaitable<void> Connection::linger() {
  stream_.shutdown_send();
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
  flush();
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
  flush();
  return status();
}

// How much the socket took at once: nothing while earlier bytes still wait, so that the order stays.
std::expected<std::size_t, WriteStatus> Connection::send_now(std::span<const asio::const_buffer> parts) {
  if (broken_) return std::unexpected(WriteStatus::Gone);
  if (pending() > 0) return 0;
  error_code failure;
  const std::size_t sent = stream_.write_some(parts, failure);
  if (failure == asio::error::would_block) return 0;
  if (failure) {
    client_left_ = true;
    break_off();
    return std::unexpected(WriteStatus::Gone);
  }
  return sent;
}

// Sends what is in flight piece by piece, then what was queued meanwhile.
void Connection::flush() {
  if (!in_flight_.empty() || queued_.empty()) return;
  in_flight_.swap(queued_);
  send_when_writable();
}

void Connection::send_when_writable() {
  stream_.socket().async_wait(stream_.write_wait(),
                              [self = shared_from_this()](const error_code& failure) { self->on_writable(failure); });
}

void Connection::on_writable(error_code failure) {
  if (!failure && !broken_) {
    const std::array rest{asio::const_buffer{in_flight_.data() + in_flight_sent_, in_flight_.size() - in_flight_sent_}};
    in_flight_sent_ += stream_.write_some(rest, failure);
    if (failure == asio::error::would_block) failure = {};
  }
  if (failure) broken_ = true;
  if (broken_) std::string{}.swap(queued_);
  const bool sent = broken_ || in_flight_sent_ == in_flight_.size();
  if (sent) {
    std::string{}.swap(in_flight_);
    in_flight_sent_ = 0;
  }
  room_.set();
  if (sent) {
    flush();
  } else {
    send_when_writable();
  }
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
  stream_.socket().close(ignored);
}

void Connection::reset() {
  error_code ignored;
  stream_.socket().set_option(Socket::linger{true, 0}, ignored);  // close() then drops what is unsent and sends RST
  close();
}

void Connection::break_off() {
  broken_ = true;
  error_code ignored;
  stream_.socket().shutdown(Socket::shutdown_both, ignored);
  stream_.socket().cancel(ignored);
}

}  // namespace balanceroute::net
