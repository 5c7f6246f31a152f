#include "net/body_framing.hpp"

#include <algorithm>
#include <string>

#include "net/head_check.hpp"

namespace balanceroute::net {

namespace {

// 15 digits are 2^60: more than any limit, and no sum of ours overflows.
constexpr int kSizeDigits = 15;
// Nobody needs either; without a bound a body of one byte could take gigabytes to read.
constexpr std::uint32_t kExtraBytes = 16 * 1024;
constexpr const char* kTooLarge = "body too large";

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

std::expected<std::size_t, NetError> BodyFraming::feed(std::string_view bytes, const Sink& sink) {
  std::size_t at = 0;
  while (at < bytes.size() && state_ != State::Done) {
    if (state_ == State::Chunk || state_ == State::Length || state_ == State::UntilEnd) {
      at += take_body(bytes.substr(at), sink);
      continue;
    }
    if (const char* fault = take(bytes[at])) {
      return std::unexpected(NetError{fault == kTooLarge ? NetFault::TooLarge : NetFault::Protocol, fault});
    }
    ++at;
  }
  return at;
}

bool BodyFraming::feed_end() {
  if (state_ == State::UntilEnd) state_ = State::Done;
  return done();
}

std::size_t BodyFraming::take_body(std::string_view bytes, const Sink& sink) {
  if (state_ == State::UntilEnd) {
    sink(bytes);
    return bytes.size();
  }
  const auto count = static_cast<std::size_t>(std::min<std::uint64_t>(left_, bytes.size()));
  sink(bytes.substr(0, count));
  left_ -= count;
  if (left_ == 0) state_ = state_ == State::Chunk ? State::ChunkCr : State::Done;
  return count;
}

const char* BodyFraming::take(char byte) {
  constexpr const char* kLine = "a chunk's line does not end with CR LF";
  switch (state_) {
    case State::Size:
    case State::Extension:
      return take_size(byte);
    case State::SizeEnd:
      return expect(byte, '\n', left_ == 0 ? State::Trailer : State::Chunk, kLine);
    case State::ChunkCr:
      return expect(byte, '\r', State::ChunkLf, "a chunk is longer than its size");
    case State::ChunkLf:
      digits_ = 0;
      return expect(byte, '\n', State::Size, kLine);
    case State::TrailerEnd:
      return expect(byte, '\n', State::Trailer, kLine);
    case State::LastEnd:
      return expect(byte, '\n', State::Done, kLine);
    default:
      return take_trailer(byte);
  }
}

const char* BodyFraming::take_size(char byte) {
  if (byte == '\r' && digits_ > 0) {
    if (left_ > limit_) return kTooLarge;
    limit_ -= left_;
    state_ = State::SizeEnd;
    return nullptr;
  }
  if (state_ == State::Extension || (byte == ';' && digits_ > 0)) {
    state_ = State::Extension;
    if (is_control(byte)) return "a chunk extension has a control character";
    return ++extra_ > kExtraBytes ? "the chunk extensions are too long" : nullptr;
  }
  const int value = hex_value(byte);
  if (value < 0) return "a chunk size is not a hexadecimal number";
  if (digits_ == kSizeDigits) return "a chunk size is too long";
  left_ = digits_ == 0 ? 0 : left_ * 16;
  left_ += static_cast<std::uint64_t>(value);
  ++digits_;
  return nullptr;
}

const char* BodyFraming::take_trailer(char byte) {
  if (byte == '\r' && state_ != State::TrailerName) {
    state_ = state_ == State::Trailer ? State::LastEnd : State::TrailerEnd;
    return nullptr;
  }
  if (++extra_ > kExtraBytes) return "the trailers are too long";
  if (state_ == State::TrailerValue) return is_control(byte) ? "a trailer has a control character" : nullptr;
  if (byte == ':' && state_ == State::TrailerName) {
    state_ = State::TrailerValue;
    return nullptr;
  }
  state_ = State::TrailerName;
  return is_token_char(byte) ? nullptr : "a trailer name has a character that is not allowed";
}

const char* BodyFraming::expect(char byte, char expected, State next, const char* fault) {
  if (byte != expected) return fault;
  state_ = next;
  return nullptr;
}

}  // namespace balanceroute::net
