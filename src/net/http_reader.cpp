#include "net/http_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

namespace balanceroute::net {

namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using BeastView = boost::beast::string_view;

std::string text(BeastView view) {
  return {view.data(), view.size()};
}

NetError parse_error(const ErrorCode& cause, std::string_view what) {
  const bool too_large = cause == http::error::header_limit || cause == http::error::body_limit;
  std::string detail = std::string{what} + ": " + cause.message();
  if (cause == http::error::header_limit) detail = std::string{what} + ": head too large";
  if (cause == http::error::body_limit) detail = std::string{what} + ": body too large";
  return {too_large ? NetFault::TooLarge : NetFault::Protocol, std::move(detail)};
}

// What requests and responses share: headers are kept, bodies are handed to `body_out`.
template <bool isRequest>
class Parser : public http::basic_parser<isRequest> {
 public:
  HeaderList headers;
  std::function<void(std::string_view)> body_out;

  std::expected<std::size_t, NetError> feed_all(std::string_view bytes, std::string_view what) {
    std::size_t used = 0;
    while (used < bytes.size() && !this->is_done()) {
      if (waits_for_chunk_header() && bytes.size() - used < kShortestLastChunk) break;
      ErrorCode failure;
      const std::size_t step = this->put(boost::asio::const_buffer{bytes.data() + used, bytes.size() - used}, failure);
      used += step;
      if (failure == http::error::need_more) break;
      if (failure) return std::unexpected(parse_error(failure, what));
      if (step == 0) break;
    }
    return used;
  }

 protected:
  void on_field_impl(http::field, BeastView name, BeastView value, ErrorCode&) override {
    headers.add(text(name), text(value));
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(BeastView body, ErrorCode&) override {
    if (body_out) body_out({body.data(), body.size()});
    return body.size();
  }
  void on_chunk_header_impl(std::uint64_t size, BeastView, ErrorCode&) override { at_chunk_header_ = size == 0; }
  std::size_t on_chunk_body_impl(std::uint64_t remain, BeastView body, ErrorCode&) override {
    at_chunk_header_ = remain == body.size();
    if (body_out) body_out({body.data(), body.size()});
    return body.size();
  }
  void on_finish_impl(ErrorCode&) override {}
  void on_request_impl(http::verb, BeastView, BeastView, int, ErrorCode&) override {}
  void on_response_impl(int, BeastView, int, ErrorCode&) override {}

 private:
  // Beast 1.81 asserts that a last chunk it has met before has come in full, "0" and two line ends. That is not so for
  // an empty body in small pieces, so it is shown no less; every other chunk has as many bytes to come anyway.
  static constexpr std::size_t kShortestLastChunk = 5;
  bool waits_for_chunk_header() const { return at_chunk_header_ && this->is_header_done() && this->chunked(); }

  bool at_chunk_header_ = true;
};

}  // namespace

class RequestReader::Impl final : public Parser<true> {
 public:
  explicit Impl(const HttpLimits& limits) {
    eager(true);
    header_limit(static_cast<std::uint32_t>(limits.head_bytes));
    body_limit(limits.body_bytes);
    body_out = [this](std::string_view body) { request.body.append(body); };
  }

  HttpRequest request;

 protected:
  void on_request_impl(http::verb, BeastView method, BeastView target, int version, ErrorCode&) override {
    request.method = text(method);
    request.target = text(target);
    request.http_1_0 = version == 10;
  }
  void on_header_impl(ErrorCode&) override {
    request.headers = std::move(headers);
    request.keep_alive = keep_alive();
  }
};

RequestReader::RequestReader(const HttpLimits& limits) : impl_{std::make_unique<Impl>(limits)} {}
RequestReader::~RequestReader() = default;
RequestReader::RequestReader(RequestReader&&) noexcept = default;
RequestReader& RequestReader::operator=(RequestReader&&) noexcept = default;

std::expected<std::size_t, NetError> RequestReader::feed(std::string_view bytes) {
  return impl_->feed_all(bytes, "request");
}

bool RequestReader::head_done() const {
  return impl_->is_header_done();
}
bool RequestReader::done() const {
  return impl_->is_done();
}

bool RequestReader::expects_continue() const {
  const auto expect = impl_->request.headers.find("Expect");
  return head_done() && !done() && expect && iequals(*expect, "100-continue");
}

HttpRequest& RequestReader::request() {
  return impl_->request;
}

class ResponseReader::Impl final : public Parser<false> {
 public:
  explicit Impl(std::size_t head_limit_bytes, bool is_answer_to_head) {
    eager(true);
    skip(is_answer_to_head);
    header_limit(static_cast<std::uint32_t>(head_limit_bytes));
    body_limit(boost::none);
  }

  HttpResponse head;

 protected:
  void on_response_impl(int code, BeastView, int, ErrorCode&) override { head.status = code; }
  void on_header_impl(ErrorCode&) override { head.headers = std::move(headers); }
};

ResponseReader::ResponseReader(std::size_t head_limit_bytes, bool is_answer_to_head)
    : impl_{std::make_unique<Impl>(head_limit_bytes, is_answer_to_head)} {}
ResponseReader::~ResponseReader() = default;
ResponseReader::ResponseReader(ResponseReader&&) noexcept = default;
ResponseReader& ResponseReader::operator=(ResponseReader&&) noexcept = default;

std::expected<std::size_t, NetError> ResponseReader::feed(std::string_view bytes, const BodySink& on_body) {
  impl_->body_out = std::ref(on_body);
  auto used = impl_->feed_all(bytes, "response");
  impl_->body_out = nullptr;
  return used;
}

bool ResponseReader::feed_end() {
  if (done()) return true;
  if (!head_done() || !impl_->need_eof()) return false;
  ErrorCode failure;
  impl_->put_eof(failure);
  return !failure;
}

bool ResponseReader::head_done() const {
  return impl_->is_header_done();
}
bool ResponseReader::done() const {
  return impl_->is_done();
}
bool ResponseReader::keep_alive() const {
  return impl_->keep_alive();
}
const HttpResponse& ResponseReader::head() const {
  return impl_->head;
}

}  // namespace balanceroute::net
