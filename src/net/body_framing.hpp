// body_framing.hpp - where the body of an HTTP/1.1 message ends, and which of its bytes are the body.
//
// Chunks are read to the letter: two servers that read `0x5`, a blank after the size or a lone line feed differently do
// not agree where the next request begins, which is how requests are smuggled. Extensions and trailers are checked and
// dropped. Source: RFC 9112, sections 6 and 7.1.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <functional>
#include <string_view>

#include "net/error.hpp"

namespace balanceroute::net {

// BodyFraming takes a body out of the bytes that follow a head.
//   Invariants  the body and its end do not depend on the pieces in which bytes come; body bytes go to the sink in
//               order, as views into what was fed.
//   Cost        O(bytes); nothing is kept of them.
class BodyFraming {
 public:
  using Sink = std::function<void(std::string_view)>;
  static constexpr std::uint64_t kNoLimit = static_cast<std::uint64_t>(-1);

  static BodyFraming none() { return BodyFraming{State::Done, 0, kNoLimit}; }
  static BodyFraming of_length(std::uint64_t length) {
    return BodyFraming{length == 0 ? State::Done : State::Length, length, kNoLimit};
  }
  // TooLarge when the chunks hold more than `limit` bytes together.
  static BodyFraming chunked(std::uint64_t limit) { return BodyFraming{State::Size, 0, limit}; }
  static BodyFraming until_end() { return BodyFraming{State::UntilEnd, 0, kNoLimit}; }

  // How many of `bytes` belong to this message.
  std::expected<std::size_t, NetError> feed(std::string_view bytes, const Sink& sink);
  // The peer closed: true when the body is whole.
  bool feed_end();
  bool done() const { return state_ == State::Done; }

 private:
  enum class State : std::uint8_t {
    Size,       // of a chunk, in hexadecimal
    Extension,  // after it
    SizeEnd,    // the line feed that ends them
    Chunk,
    ChunkCr,
    ChunkLf,
    Trailer,  // at the start of a line after the last chunk
    TrailerName,
    TrailerValue,
    TrailerEnd,
    LastEnd,  // the line feed that ends the message
    Length,
    UntilEnd,
    Done
  };

  BodyFraming(State state, std::uint64_t left, std::uint64_t limit) : state_{state}, left_{left}, limit_{limit} {}
  std::size_t take_body(std::string_view bytes, const Sink& sink);
  // What is wrong with the byte, or null.
  const char* take(char byte);
  const char* take_size(char byte);
  const char* take_trailer(char byte);
  const char* expect(char byte, char expected, State next, const char* fault);

  State state_;
  std::uint8_t digits_ = 0;
  std::uint32_t extra_ = 0;  // bytes of extensions and trailers so far
  std::uint64_t left_;       // of the chunk, or of the body
  std::uint64_t limit_;      // of all chunks that follow
};

}  // namespace balanceroute::net
