#include "net/head_check.hpp"

#include <algorithm>
#include <optional>

#include "net/http.hpp"

namespace balanceroute::net {

namespace {

constexpr std::string_view kTokenPunctuation = "!#$%&'*+-.^_`|~";

bool is_token_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
         kTokenPunctuation.find(c) != std::string_view::npos;
}

bool is_token(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, is_token_char);
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::string_view trim(std::string_view value) {
  constexpr std::string_view kBlank = " \t";
  const auto first = value.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(kBlank) - first + 1);
}

bool is_length(std::string_view value) {
  return !value.empty() && value.size() <= 18 &&
         std::ranges::all_of(value, [](char c) { return c >= '0' && c <= '9'; });
}

// What decides where the body ends, and for whom the request is.
struct Framing {
  std::optional<std::string_view> content_length;
  bool chunked = false;
  int hosts = 0;
};

std::expected<void, std::string> note_field(std::string_view name, std::string_view value, Framing& framing) {
  if (iequals(name, "Content-Length")) {
    if (framing.content_length) return std::unexpected("Content-Length is repeated");
    if (!is_length(value)) return std::unexpected("Content-Length is not a number");
    framing.content_length = value;
  } else if (iequals(name, "Transfer-Encoding")) {
    if (framing.chunked) return std::unexpected("Transfer-Encoding is repeated");
    if (!iequals(value, "chunked")) return std::unexpected("Transfer-Encoding is not supported, expected chunked");
    framing.chunked = true;
  } else if (iequals(name, "Host")) {
    if (++framing.hosts > 1) return std::unexpected("Host is repeated");
  }
  return {};
}

std::expected<void, std::string> check_field(std::string_view line, Framing& framing) {
  if (line.front() == ' ' || line.front() == '\t') return std::unexpected("a header field is folded over two lines");
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return std::unexpected("a header line has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return std::unexpected("a header name has a character that is not allowed");
  return note_field(name, trim(line.substr(colon + 1)), framing);
}

std::expected<void, std::string> check_request_line(std::string_view line) {
  const auto after_method = line.find(' ');
  const auto before_version = line.rfind(' ');
  if (after_method == std::string_view::npos || before_version == after_method) {
    return std::unexpected("the request line is not 'METHOD target HTTP/1.1'");
  }
  const std::string_view target = line.substr(after_method + 1, before_version - after_method - 1);
  const std::string_view version = line.substr(before_version + 1);
  if (version == "HTTP/2.0") return std::unexpected("HTTP/2 is not supported, expected HTTP/1.1");
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return std::unexpected("the HTTP version is not 1.1 or 1.0");
  if (!is_token(line.substr(0, after_method))) return std::unexpected("the method is not a token");
  if (target.empty() || target.find(' ') != std::string_view::npos) return std::unexpected("the target has a space");
  return {};
}

}  // namespace

std::size_t find_head_end(std::string_view bytes) {
  const auto end = bytes.find("\r\n\r\n");
  return end == std::string_view::npos ? end : end + 4;
}

std::expected<void, std::string> check_request_head(std::string_view head) {
  Framing framing;
  bool first = true;
  while (head != "\r\n") {
    const auto end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    if (std::ranges::any_of(line, is_control)) return std::unexpected("the head has a control character");
    if (line.empty()) return std::unexpected("the head has an empty line");
    const auto checked = first ? check_request_line(line) : check_field(line, framing);
    if (!checked) return checked;
    first = false;
    head.remove_prefix(end + 2);
  }
  if (framing.chunked && framing.content_length) {
    return std::unexpected("Content-Length and Transfer-Encoding are both given");
  }
  return {};
}

}  // namespace balanceroute::net
