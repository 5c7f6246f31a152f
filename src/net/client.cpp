#include "net/client.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/buffer.hpp>
#include <boost/asio/connect.hpp>
#include <boost/asio/error.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/url/parse.hpp>
#include <charconv>
#include <optional>
#include <utility>

#include "net/http_reader.hpp"
#include "net/networks.hpp"
#include "net/stream.hpp"

namespace balanceroute::net {

namespace {

using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadBytes = 64 * 1024;

// One buffer a thread: a connection that waits for bytes owns none, so idle streams cost little memory.
std::string& read_buffer() {
  thread_local std::string buffer(kReadBytes, '\0');
  return buffer;
}

std::string request_head(const HttpRequest& request, const Endpoint& endpoint) {
  std::string head = request.method + " " + request.target + " HTTP/1.1\r\nHost: " + endpoint.authority() + "\r\n";
  for (const auto& [name, value] : request.headers) head.append(name).append(": ").append(value).append("\r\n");
  if (!request.body.empty() || request.method == "POST") {
    head.append("Content-Length: ").append(std::to_string(request.body.size())).append("\r\n");
  }
  return head.append("\r\n");
}

// Such as 100 Continue: the answer is still to come.
bool is_interim(int status) {
  return status < 200 && status != 101;
}

// What no server that we ask may answer, or null. Whoever followed a redirect would send a request, its body and its
// keys to wherever the server says.
const char* refusal_of(int status) {
  if (status == 101) return "the server changed to another protocol";
  return status >= 300 && status < 400 && status != 304 ? "the server redirects, which is never followed" : nullptr;
}

}  // namespace

std::string Endpoint::authority() const {
  const bool ipv6 = host.find(':') != std::string::npos;
  return (ipv6 ? "[" + host + "]" : host) + ":" + std::to_string(port);
}

std::string without_userinfo(std::string_view url) {
  const auto scheme = url.find("//");
  const std::size_t start = scheme == std::string_view::npos ? 0 : scheme + 2;
  const auto at = url.substr(0, url.find('/', start)).rfind('@');
  if (at == std::string_view::npos || at < start) return std::string{url};
  return std::string{url.substr(0, start)} + "***" + std::string{url.substr(at)};
}

std::string Endpoint::url() const {
  return (tls ? "https://" : "http://") + authority();
}

std::expected<Endpoint, std::string> parse_http_url(std::string_view url, Schemes schemes) {
  const bool any = schemes == Schemes::http_and_https;
  const auto wrong = [any](const std::string& what) {
    return std::unexpected(what +
                           (any ? ", expected http://host:port or https://host:port" : ", expected http://host:port"));
  };
  const auto parsed = boost::urls::parse_uri(boost::urls::string_view{url.data(), url.size()});
  if (!parsed) return wrong("not a URL");
  const bool tls = parsed->scheme_id() == boost::urls::scheme::https;
  if (parsed->scheme_id() != boost::urls::scheme::http && !(tls && any)) {
    return wrong("scheme '" + std::string{parsed->scheme().data(), parsed->scheme().size()} + "' is not supported");
  }
  if (!parsed->encoded_path().empty() && parsed->encoded_path() != "/") return wrong("has a path");
  if (parsed->has_userinfo() || parsed->has_query() || parsed->has_fragment()) {
    return wrong("has more than host and port");
  }
  std::string host = parsed->host_address();
  if (host.empty()) return wrong("has no host");
  if (!parsed->has_port()) return Endpoint{std::move(host), static_cast<std::uint16_t>(tls ? 443 : 80), tls};
  const std::string_view digits{parsed->port().data(), parsed->port().size()};
  unsigned port = 0;
  std::from_chars(digits.data(), digits.data() + digits.size(), port);
  if (port < 1 || port > 65535) return std::unexpected("has no valid port, expected 1..65535");
  return Endpoint{std::move(host), static_cast<std::uint16_t>(port), tls};
}

// ClientConnection is one socket and the response that is being read from it.
class ClientConnection {
 public:
  ClientConnection(IoThread& thread, std::size_t head_limit)
      : thread_{thread}, stream_{tcp::socket{thread.context()}}, deadline_{thread.timers()}, head_limit_{head_limit} {}

  asio::awaitable<std::expected<void, NetError>> connect(const std::vector<tcp::endpoint>& addresses,
                                                         const std::string& doing, TimePoint deadline) {
    const DeadlineGuard guard{*this, deadline};
    error_code failure;
    co_await asio::async_connect(stream_.socket(), addresses, asio::redirect_error(asio::use_awaitable, failure));
    if (failure) co_return std::unexpected(fault(failure, doing));
    stream_.prepare();
    co_return std::expected<void, NetError>{};
  }

  // No request has been sent yet, so what goes wrong is a fault of connecting.
  asio::awaitable<std::expected<void, NetError>> secure(std::shared_ptr<const TlsContext> context,
                                                        const std::string& name, const std::string& doing,
                                                        TimePoint deadline) {
    const DeadlineGuard guard{*this, deadline};
    stream_.begin_tls(TlsSession::connect(std::move(context), stream_.socket().native_handle(), name));
    const error_code failure = co_await stream_.handshake();
    if (!failure) co_return std::expected<void, NetError>{};
    if (late_ || failure == asio::error::operation_aborted) co_return std::unexpected(fault(failure, doing));
    const std::string& reason = stream_.tls()->reason();
    co_return std::unexpected(
        NetError{NetFault::Connect, doing + ": TLS: " + (reason.empty() ? "the server ended it" : reason)});
  }

  asio::awaitable<std::expected<void, NetError>> write(std::string head, std::string_view body, TimePoint deadline) {
    const DeadlineGuard guard{*this, deadline};
    error_code failure;
    std::array parts{asio::const_buffer{head.data(), head.size()}, asio::const_buffer{body.data(), body.size()}};
    while (parts[0].size() + parts[1].size() > 0) {
      const std::size_t sent = stream_.write_some(parts, failure);
      const std::size_t of_head = std::min(sent, parts[0].size());
      parts[0] += of_head;
      parts[1] += sent - of_head;
      if (failure == asio::error::would_block) {
        failure = {};
        co_await stream_.socket().async_wait(stream_.write_wait(), asio::redirect_error(asio::use_awaitable, failure));
      }
      if (failure) co_return std::unexpected(fault(failure, "send request"));
    }
    co_return std::expected<void, NetError>{};
  }

  asio::awaitable<std::expected<void, NetError>> read_head(bool is_answer_to_head, TimePoint deadline) {
    reader_.emplace(head_limit_, is_answer_to_head);
    body_.clear();
    received_ = false;
    while (!reader_->head_done()) {
      const auto read = co_await read_some(deadline);
      if (!read) co_return std::unexpected(read.error());
      while (reader_->head_done() && is_interim(reader_->head().status)) {
        reader_.emplace(head_limit_, is_answer_to_head);  // what follows it is kept in rest_
        if (const auto fed = feed_rest(); !fed) co_return std::unexpected(fed.error());
      }
    }
    if (const char* why = refusal_of(reader_->head().status)) {
      co_return std::unexpected(
          NetError{NetFault::Protocol, "read response: status " + std::to_string(reader_->head().status) + ": " + why});
    }
    co_return std::expected<void, NetError>{};
  }

  // Empty at the proper end.
  asio::awaitable<std::expected<std::string_view, NetError>> read_body(TimePoint deadline) {
    handed_out_.clear();
    while (body_.empty() && !reader_->done()) {
      const auto read = co_await read_some(deadline);
      if (!read) co_return std::unexpected(read.error());
    }
    handed_out_.swap(body_);
    co_return std::string_view{handed_out_};
  }

  const HttpResponse& head() const { return reader_->head(); }
  bool received() const { return received_; }
  bool reusable() const { return reader_ && reader_->done() && reader_->keep_alive() && rest_.empty() && !ended_; }

  // A server that closed an idle connection shows it to whoever looks; so does one that sent what nobody asked for.
  bool still_open() { return stream_.is_idle(); }

  TimePoint idle_since{};

 private:
  // Cancels what the socket does when the deadline passes. The timer stays armed from one operation to the next, as
  // deadlines mostly move on: it is set anew when it is too late, or has come too early.
  class DeadlineGuard {
   public:
    DeadlineGuard(ClientConnection& connection, TimePoint deadline) : connection_{connection} {
      connection_.late_ = false;
      connection_.cancel_at_ = deadline;
      if (deadline < connection_.deadline_.deadline() || !connection_.deadline_.armed()) connection_.arm_deadline();
    }
    ~DeadlineGuard() { connection_.cancel_at_ = kNever; }
    DeadlineGuard(const DeadlineGuard&) = delete;
    DeadlineGuard& operator=(const DeadlineGuard&) = delete;

   private:
    ClientConnection& connection_;
  };

  void arm_deadline() {
    deadline_.arm(cancel_at_, [this] { deadline_has_come(); });
  }
  void deadline_has_come() {
    if (thread_.now() < cancel_at_) {
      if (cancel_at_ != kNever) arm_deadline();
      return;
    }
    late_ = true;
    error_code ignored;
    stream_.socket().cancel(ignored);
  }

  NetError fault(const error_code& failure, std::string_view doing) const {
    NetError error = net_error(failure, doing);
    if (late_) error = {NetFault::Timeout, std::string{doing} + ": deadline passed"};
    return error;
  }

  // Reads what there is and feeds it to the reader.
  asio::awaitable<std::expected<void, NetError>> read_some(TimePoint deadline) {
    if (!stream_.tls() && drained_) co_return co_await read_when_it_comes(deadline);
    error_code failure;
    std::size_t count = stream_.read_some(asio::buffer(read_buffer()), failure);
    if (failure == asio::error::would_block) {
      drained_ = true;
      if (!stream_.tls()) co_return co_await read_when_it_comes(deadline);
      failure = {};
      {
        const DeadlineGuard guard{*this, deadline};
        co_await stream_.socket().async_wait(stream_.read_wait(), asio::redirect_error(asio::use_awaitable, failure));
      }
      if (!failure) count = stream_.read_some(asio::buffer(read_buffer()), failure);
      if (failure == asio::error::would_block) co_return std::expected<void, NetError>{};
    }
    co_return take(failure, {read_buffer().data(), count});
  }

  // Into a small buffer, which fits an event: so one that comes alone costs one system call.
  asio::awaitable<std::expected<void, NetError>> read_when_it_comes(TimePoint deadline) {
    error_code failure;
    std::size_t count = 0;
    {
      const DeadlineGuard guard{*this, deadline};
      count = co_await stream_.socket().async_read_some(asio::buffer(first_bytes_),
                                                        asio::redirect_error(asio::use_awaitable, failure));
    }
    drained_ = count < first_bytes_.size();
    co_return take(failure, {first_bytes_.data(), count});
  }

  std::expected<void, NetError> take(const error_code& failure, std::string_view bytes) {
    if (failure == asio::error::eof) return end_of_input();
    if (failure) return std::unexpected(fault(failure, "read response"));
    received_ = true;
    return feed(bytes);
  }

  std::expected<void, NetError> feed_rest() { return feed({}); }

  // Gives the reader what it left last time and `bytes`.
  std::expected<void, NetError> feed(std::string_view bytes) {
    if (!rest_.empty()) bytes = rest_.append(bytes);
    const auto used = reader_->feed(bytes, [this](std::string_view part) { body_.append(part); });
    if (!used) return std::unexpected(used.error());
    rest_ = std::string{bytes.substr(*used)};
    return {};
  }

  std::expected<void, NetError> end_of_input() {
    ended_ = true;
    if (reader_->feed_end()) return {};
    return std::unexpected(NetError{NetFault::Closed, "read response: the server closed the connection"});
  }

  IoThread& thread_;
  Stream stream_;
  Timer deadline_;
  TimePoint cancel_at_ = kNever;  // what the operation of now is allowed
  std::size_t head_limit_;
  std::optional<ResponseReader> reader_;
  std::array<char, 512> first_bytes_;
  bool drained_ = false;    // the last read took all there was
  std::string rest_;        // received, not yet taken by the reader
  std::string body_;        // body bytes not yet handed out
  std::string handed_out_;  // what the last read_body() returned
  bool late_ = false;
  bool received_ = false;  // any byte of the current response
  bool ended_ = false;
};

HttpCall::HttpCall(HttpClient& client, std::unique_ptr<ClientConnection> connection)
    : client_{&client}, connection_{std::move(connection)} {}
HttpCall::HttpCall(HttpCall&&) noexcept = default;
HttpCall& HttpCall::operator=(HttpCall&&) noexcept = default;

HttpCall::~HttpCall() {
  if (connection_) client_->give_back(std::move(connection_));
}

const HttpResponse& HttpCall::head() const {
  return connection_->head();
}

asio::awaitable<std::expected<std::string_view, NetError>> HttpCall::read_body(TimePoint deadline) {
  return connection_->read_body(deadline);
}

asio::awaitable<std::expected<std::string, NetError>> HttpCall::read_all(std::size_t limit, TimePoint deadline) {
  std::string body;
  for (;;) {
    const auto part = co_await read_body(deadline);
    if (!part) co_return std::unexpected(part.error());
    if (part->empty()) co_return body;
    body.append(*part);
    if (body.size() > limit) co_return std::unexpected(NetError{NetFault::TooLarge, "read response: body too large"});
  }
}

HttpClient::HttpClient(IoThread& thread, Endpoint endpoint, ClientOptions options)
    : thread_{thread}, endpoint_{std::move(endpoint)}, options_{std::move(options)} {}
HttpClient::~HttpClient() = default;

asio::awaitable<std::expected<HttpCall, NetError>> HttpClient::send(const HttpRequest& request, TimePoint deadline) {
  if (auto kept = take_idle()) {
    const auto heads = co_await exchange_heads(*kept, request, deadline);
    if (heads) co_return HttpCall{*this, std::move(kept)};
    const bool dead = heads.error().fault == NetFault::Closed || heads.error().fault == NetFault::Reset;
    if (!dead || kept->received()) co_return std::unexpected(heads.error());
  }
  auto fresh = co_await connect(deadline);
  if (!fresh) co_return std::unexpected(fresh.error());
  const auto heads = co_await exchange_heads(**fresh, request, deadline);
  if (!heads) co_return std::unexpected(heads.error());
  co_return HttpCall{*this, std::move(*fresh)};
}

asio::awaitable<std::expected<void, NetError>> HttpClient::exchange_heads(ClientConnection& connection,
                                                                          const HttpRequest& request,
                                                                          TimePoint deadline) {
  const auto written = co_await connection.write(request_head(request, endpoint_), request.body, deadline);
  if (!written) co_return written;
  co_return co_await connection.read_head(request.method == "HEAD", deadline);
}

asio::awaitable<std::expected<std::unique_ptr<ClientConnection>, NetError>> HttpClient::connect(TimePoint deadline) {
  const std::string doing = "connect to " + endpoint_.authority();
  tcp::resolver resolver{thread_.context()};
  error_code failure;
  const auto addresses = co_await resolver.async_resolve(endpoint_.host, std::to_string(endpoint_.port),
                                                         asio::redirect_error(asio::use_awaitable, failure));
  if (failure == asio::error::operation_aborted) co_return std::unexpected(net_error(failure, doing));
  if (failure) co_return std::unexpected(NetError{NetFault::Resolve, doing + ": " + failure.message()});
  std::vector<tcp::endpoint> allowed;
  for (const auto& found : addresses) {
    if (!options_.networks || options_.networks->contain(found.endpoint().address())) {
      allowed.push_back(found.endpoint());
    }
  }
  if (allowed.empty()) {
    co_return std::unexpected(NetError{NetFault::Connect, doing + ": its address is in none of the allowed networks"});
  }
  auto connection = std::make_unique<ClientConnection>(thread_, options_.head_bytes);
  const TimePoint connect_by = std::min(deadline, thread_.now() + options_.connect_timeout);
  const auto connected = co_await connection->connect(allowed, doing, connect_by);
  if (!connected) co_return std::unexpected(connected.error());
  const auto secured = co_await secure(*connection, doing, connect_by);
  if (!secured) co_return std::unexpected(secured.error());
  co_return std::move(connection);
}

asio::awaitable<std::expected<void, NetError>> HttpClient::secure(ClientConnection& connection,
                                                                  const std::string& doing, TimePoint deadline) {
  if (!endpoint_.tls) co_return std::expected<void, NetError>{};
  auto context = options_.tls ? options_.tls->current() : nullptr;
  if (!context) co_return std::unexpected(NetError{NetFault::Connect, doing + ": TLS is not set up"});
  std::string name = options_.tls->server_name();
  if (name.empty()) name = endpoint_.host;
  co_return co_await connection.secure(std::move(context), name, doing, deadline);
}

std::unique_ptr<ClientConnection> HttpClient::take_idle() {
  const TimePoint oldest = thread_.now() - options_.idle_limit;
  std::erase_if(idle_, [oldest](const auto& connection) { return connection->idle_since <= oldest; });
  while (!idle_.empty()) {
    auto connection = std::move(idle_.back());
    idle_.pop_back();
    if (connection->still_open()) return connection;
  }
  return nullptr;
}

void HttpClient::give_back(std::unique_ptr<ClientConnection> connection) {
  if (options_.idle_limit <= Duration::zero() || !connection->reusable()) return;
  connection->idle_since = thread_.now();
  idle_.push_back(std::move(connection));
}

}  // namespace balanceroute::net
