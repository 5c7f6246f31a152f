// chunks_fuzz.cpp - chunks are read as a reader does that has all of them before it; where they are cut changes
// nothing.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "net/body_framing.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

struct Whole {
  std::string body;
  std::size_t used = 0;
  friend bool operator==(const Whole&, const Whole&) = default;
};

// Takes a line and its end off `rest`.
std::optional<std::string> take_line(std::string_view& rest) {
  const auto end = rest.find("\r\n");
  if (end == std::string_view::npos) return std::nullopt;
  const std::string line{rest.substr(0, end)};
  for (const char c : line) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte < ' ' && c != '\t') || byte == 127) return std::nullopt;
  }
  rest.remove_prefix(end + 2);
  return line;
}

// The slow obvious way: line, chunk, line, chunk, until the empty chunk and its trailers.
std::optional<Whole> read_plainly(std::string_view bytes) {
  std::string_view rest = bytes;
  Whole whole;
  for (;;) {
    const auto line = take_line(rest);
    if (!line) return std::nullopt;
    const std::string digits = line->substr(0, line->find(';'));
    if (digits.empty() || digits.size() > 15) return std::nullopt;
    if (digits.find_first_not_of("0123456789abcdefABCDEF") != std::string::npos) return std::nullopt;
    const std::size_t length = std::stoull(digits, nullptr, 16);
    if (length == 0) break;
    if (rest.size() < length + 2 || rest.substr(length, 2) != "\r\n") return std::nullopt;
    whole.body += rest.substr(0, length);
    rest.remove_prefix(length + 2);
  }
  for (;;) {
    const auto line = take_line(rest);
    if (!line) return std::nullopt;
    if (line->empty()) break;
    constexpr std::string_view kToken = "!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    const auto colon = line->find(':');
    if (colon == std::string::npos || colon == 0) return std::nullopt;
    if (line->substr(0, colon).find_first_not_of(kToken) != std::string::npos) return std::nullopt;
  }
  whole.used = bytes.size() - rest.size();
  return whole;
}

std::optional<Whole> read_in_pieces(std::string_view bytes, std::size_t piece) {
  net::BodyFraming framing = net::BodyFraming::chunked(net::BodyFraming::kNoLimit);
  Whole whole;
  for (std::size_t at = 0; at < bytes.size() && !framing.done(); at += piece) {
    const auto used = framing.feed(bytes.substr(at, piece), [&](std::string_view part) { whole.body.append(part); });
    if (!used) return std::nullopt;
    whole.used += *used;
  }
  if (!framing.done()) return std::nullopt;
  return whole;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 8192) return 0;  // longer ones meet the bound of extensions and trailers, which the obvious way has not
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const auto plain = read_plainly(bytes);
  require(read_in_pieces(bytes, size == 0 ? 1 : size) == plain);
  require(read_in_pieces(bytes, 1) == plain);
  require(read_in_pieces(bytes, 7) == plain);
  return 0;
}
