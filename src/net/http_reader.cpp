#include "net/http_reader.hpp"

#include <boost/asio/buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/http/error.hpp>
#include <utility>

#include "net/body_framing.hpp"
#include "net/head_check.hpp"

namespace balanceroute::net {

namespace {

namespace http = boost::beast::http;
using ErrorCode = boost::beast::error_code;
using BeastView = boost::beast::string_view;

std::string text(BeastView view) {
  return {view.data(), view.size()};
}

// What requests and responses share: Beast reads the head, BodyFraming the rest.
template <bool isRequest>
class Parser : public http::basic_parser<isRequest> {
 public:
  HeaderList headers;

  Parser(std::size_t head_limit_bytes, std::string_view what) : head_limit_bytes_{head_limit_bytes}, what_{what} {
    this->eager(false);
    this->header_limit(static_cast<std::uint32_t>(head_limit_bytes));
  }

  std::expected<std::size_t, NetError> feed(std::string_view bytes, const BodyFraming::Sink& sink) {
    std::size_t used = 0;
    if (!this->is_header_done()) {
      const std::size_t end = find_head_end(bytes);
      const bool whole = end != std::string_view::npos;
      if ((whole ? end : bytes.size()) > head_limit_bytes_) return std::unexpected(error("head too large", true));
      if (!isRequest && !may_become_response(bytes)) return std::unexpected(error("not an HTTP/1.1 answer"));
      if (!whole) return 0;
      if (const auto read = read_head(bytes.substr(0, end)); !read) return std::unexpected(read.error());
      used = end;
    }
    const auto taken = body_.feed(bytes.substr(used), sink);
    if (!taken) return std::unexpected(error(taken.error().detail, taken.error().fault == NetFault::TooLarge));
    return used + *taken;
  }
  bool feed_end() { return this->is_header_done() && body_.feed_end(); }
  bool message_done() const { return this->is_header_done() && body_.done(); }

 protected:
  void on_field_impl(http::field, BeastView name, BeastView value, ErrorCode&) override {
    headers.add(text(name), text(value));
  }
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(BeastView, ErrorCode&) override { return 0; }
  void on_chunk_header_impl(std::uint64_t, BeastView, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, BeastView, ErrorCode&) override { return 0; }
  void on_finish_impl(ErrorCode&) override {}
  void on_request_impl(http::verb, BeastView, BeastView, int, ErrorCode&) override {}
  void on_response_impl(int, BeastView, int, ErrorCode&) override {}

  NetError error(std::string_view detail, bool too_large = false) const {
    return {too_large ? NetFault::TooLarge : NetFault::Protocol, std::string{what_} + ": " + std::string{detail}};
  }
  // Of all chunks together; what has a length is measured by its head.
  std::uint64_t chunks_limit = BodyFraming::kNoLimit;

 private:
  std::expected<void, NetError> read_head(std::string_view head) {
    if constexpr (!isRequest) {
      if (const auto checked = check_response_head(head); !checked) return std::unexpected(error(checked.error()));
    }
    ErrorCode failure;
    this->put(boost::asio::const_buffer{head.data(), head.size()}, failure);
    if (failure == http::error::body_limit) return std::unexpected(error("body too large", true));
    if (failure) return std::unexpected(error(failure.message()));
    if (this->is_done()) return {};
    if (this->chunked()) {
      body_ = BodyFraming::chunked(chunks_limit);
    } else if (const auto length = this->content_length()) {
      body_ = BodyFraming::of_length(*length);
    } else {
      body_ = BodyFraming::until_end();
    }
    return {};
  }

  std::size_t head_limit_bytes_;
  std::string_view what_;
  BodyFraming body_ = BodyFraming::none();
};

}  // namespace

class RequestReader::Impl final : public Parser<true> {
 public:
  explicit Impl(const HttpLimits& limits) : Parser{limits.head_bytes, "request"} {
    body_limit(limits.body_bytes);
    chunks_limit = limits.body_bytes;
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
  return impl_->feed(bytes, [this](std::string_view body) { impl_->request.body.append(body); });
}

bool RequestReader::head_done() const {
  return impl_->is_header_done();
}
bool RequestReader::done() const {
  return impl_->message_done();
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
  Impl(std::size_t head_limit_bytes, bool is_answer_to_head) : Parser{head_limit_bytes, "response"} {
    skip(is_answer_to_head);
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
  return impl_->feed(bytes, on_body);
}

bool ResponseReader::feed_end() {
  return impl_->feed_end();
}

bool ResponseReader::head_done() const {
  return impl_->is_header_done();
}
bool ResponseReader::done() const {
  return impl_->message_done();
}
bool ResponseReader::keep_alive() const {
  return impl_->keep_alive();
}
const HttpResponse& ResponseReader::head() const {
  return impl_->head;
}

}  // namespace balanceroute::net
