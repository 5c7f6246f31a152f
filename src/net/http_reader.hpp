// http_reader.hpp - HTTP/1.1 messages out of bytes that arrive in any pieces.
//
// The grammar of heads is Boost.Beast's, which this file hides, so that no other header includes Beast; where bodies
// end is body_framing.hpp's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "net/error.hpp"
#include "net/http.hpp"

namespace balanceroute::net {

struct HttpLimits {
  std::size_t head_bytes = 64 * 1024;
  std::size_t head_fields = 128;
  std::uint64_t body_bytes = 64 * 1024 * 1024;
};

// RequestReader assembles one request whose head has been checked (head_check.hpp).
//   Invariants  what feed() did not consume is offered again with what follows: a head is taken whole or not at all,
//               and what comes after the body belongs to the next request. The result does not depend on the pieces.
class RequestReader {
 public:
  explicit RequestReader(const HttpLimits& limits);
  ~RequestReader();
  RequestReader(RequestReader&&) noexcept;
  RequestReader& operator=(RequestReader&&) noexcept;

  // How many of `bytes` were used. TooLarge says which limit, Protocol what is wrong.
  std::expected<std::size_t, NetError> feed(std::string_view bytes);
  bool head_done() const;
  bool done() const;
  // The client waits for "100 Continue" before it sends the body.
  bool expects_continue() const;
  // Valid once head_done(); its body is complete once done().
  HttpRequest& request();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

// ResponseReader checks one response and takes it apart.
//   Invariants  as those of RequestReader; body bytes are handed to the sink in order, without chunk framing, as views
//               into what was fed.
class ResponseReader {
 public:
  using BodySink = std::function<void(std::string_view)>;

  explicit ResponseReader(std::size_t head_limit_bytes, bool is_answer_to_head = false);
  ~ResponseReader();
  ResponseReader(ResponseReader&&) noexcept;
  ResponseReader& operator=(ResponseReader&&) noexcept;

  std::expected<std::size_t, NetError> feed(std::string_view bytes, const BodySink& on_body);
  // The peer closed: true when that ends a message which has no length of its own.
  bool feed_end();
  bool head_done() const;
  bool done() const;
  bool keep_alive() const;
  // Status and headers once head_done(); its body stays empty.
  const HttpResponse& head() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace balanceroute::net
