#include "net/head_check.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "net/http.hpp"

namespace balanceroute::net {

namespace {

constexpr std::string_view kTokenPunctuation = "!#$%&'*+-.^_`|~";
constexpr std::string_view kOtherProtocol = "HTTP/2, gRPC and Upgrade are not supported, expected plain HTTP/1.1";
constexpr std::string_view kEnd = "\r\n\r\n";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

bool is_alphanumeric(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

bool is_token(std::string_view word) {
  return !word.empty() && std::ranges::all_of(word, is_token_char);
}

std::string_view trim(std::string_view value) {
  constexpr std::string_view kBlank = " \t";
  const auto first = value.find_first_not_of(kBlank);
  if (first == std::string_view::npos) return {};
  return value.substr(first, value.find_last_not_of(kBlank) - first + 1);
}

bool istarts_with(std::string_view text, std::string_view start) {
  return text.size() >= start.size() && iequals(text.substr(0, start.size()), start);
}

bool is_length(std::string_view value) {
  return !value.empty() && value.size() <= 18 && std::ranges::all_of(value, is_digit);
}

// A name or an address, and a port: without a user, a path or a second host.
bool is_host(std::string_view value) {
  static constexpr std::string_view kPunctuation = ".-_~%!$&'()*+;=:[]";
  return std::ranges::all_of(
      value, [](char c) { return is_alphanumeric(c) || kPunctuation.find(c) != std::string_view::npos; });
}

// Path and query as RFC 3986 spells them, so that every server finds the same path in it.
bool is_target(std::string_view target) {
  constexpr std::string_view kPunctuation = "/?:@!$&'()*+,;=-._~";
  for (std::size_t i = 0; i < target.size(); ++i) {
    if (target[i] == '%') {
      if (i + 2 >= target.size() || !is_hex_digit(target[i + 1]) || !is_hex_digit(target[i + 2])) return false;
      i += 2;
    } else if (!is_alphanumeric(target[i]) && kPunctuation.find(target[i]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

using Verdict = std::expected<void, HeadFault>;

std::unexpected<HeadFault> bad(std::string_view detail, int status = 400) {
  return std::unexpected(HeadFault{status, std::string{detail}});
}

// What decides where the body ends, and for whom the request is.
struct Framing {
  bool has_length = false;
  bool chunked = false;
  bool http_1_0 = false;
  std::size_t hosts = 0;
  std::size_t fields = 0;
};

Verdict note_framing(std::string_view name, std::string_view value, Framing& framing) {
  if (iequals(name, "Content-Length")) {
    if (framing.has_length) return bad("Content-Length is repeated");
    if (!is_length(value)) return bad("Content-Length is not a number");
    framing.has_length = true;
  } else if (iequals(name, "Transfer-Encoding")) {
    if (framing.chunked) return bad("Transfer-Encoding is repeated");
    if (!iequals(value, "chunked")) return bad("Transfer-Encoding is not supported, expected chunked");
    if (framing.http_1_0) return bad("Transfer-Encoding is not part of HTTP/1.0");
    framing.chunked = true;
  }
  return {};
}

Verdict note_request_field(std::string_view name, std::string_view value, Framing& framing) {
  if (iequals(name, "Host")) {
    if (++framing.hosts > 1) return bad("Host is repeated");
    if (!is_host(value)) return bad("Host is not a host and a port");
  } else if (iequals(name, "Upgrade") || (iequals(name, "Content-Type") && istarts_with(value, "application/grpc"))) {
    return bad(kOtherProtocol);
  } else if (iequals(name, "Expect") && !iequals(value, "100-continue")) {
    return bad("Expect is not supported, expected 100-continue", 417);
  }
  return note_framing(name, value, framing);
}

struct Field {
  std::string_view name;
  std::string_view value;
};

std::expected<Field, HeadFault> split_field(std::string_view line) {
  if (line.front() == ' ' || line.front() == '\t') return bad("a header field is folded over two lines");
  const auto colon = line.find(':');
  if (colon == std::string_view::npos) return bad("a header line has no colon");
  const std::string_view name = line.substr(0, colon);
  if (!is_token(name)) return bad("a header name has a character that is not allowed");
  return Field{name, trim(line.substr(colon + 1))};
}

Verdict check_request_line(std::string_view line, Framing& framing) {
  const auto after_method = line.find(' ');
  const auto before_version = line.rfind(' ');
  if (after_method == std::string_view::npos || before_version == after_method) {
    return bad("the request line is not 'METHOD target HTTP/1.1'");
  }
  const std::string_view target = line.substr(after_method + 1, before_version - after_method - 1);
  const std::string_view version = line.substr(before_version + 1);
  if (version.starts_with("HTTP/2")) return bad(kOtherProtocol, 505);
  if (version != "HTTP/1.1" && version != "HTTP/1.0") return bad("the HTTP version is not 1.1 or 1.0", 505);
  framing.http_1_0 = version == "HTTP/1.0";
  if (!is_token(line.substr(0, after_method))) return bad("the method is not a token");
  if (!target.starts_with('/')) return bad("the target is not a path, expected one that starts with /");
  if (!is_target(target)) return bad("the target has a character that is not allowed");
  return {};
}

// "HTTP/1.1 200 OK"; what comes after the status is for people.
Verdict check_status_line(std::string_view line) {
  constexpr std::size_t kStatusEnd = 12;
  const bool version = line.starts_with("HTTP/1.1 ") || line.starts_with("HTTP/1.0 ");
  if (!version || line.size() < kStatusEnd) return bad("the status line is not 'HTTP/1.1 status reason'");
  const std::string_view status = line.substr(9, 3);
  const bool three_digits = std::ranges::all_of(status, is_digit) && status[0] >= '1' && status[0] <= '5';
  if (!three_digits || (line.size() > kStatusEnd && line[kStatusEnd] != ' ')) return bad("the status is no number");
  return {};
}

// Every line of a head: the first to `check_first`, fields to `note_field`.
template <class First, class Note>
Verdict check_lines(std::string_view head, std::size_t max_fields, Framing& framing, First check_first,
                    Note note_field) {
  bool first = true;
  while (head != "\r\n") {
    const auto end = head.find("\r\n");
    const std::string_view line = head.substr(0, end);
    if (std::ranges::any_of(line, is_control)) return bad("the head has a control character or a lone line end");
    if (line.empty()) return bad("the head has an empty line");
    if (std::exchange(first, false)) {
      if (auto checked = check_first(line); !checked) return checked;
    } else {
      if (++framing.fields > max_fields) {
        return bad("the head has more than " + std::to_string(max_fields) + " fields", 431);
      }
      const auto field = split_field(line);
      if (!field) return std::unexpected(field.error());
      if (auto noted = note_field(field->name, field->value); !noted) return noted;
    }
    head.remove_prefix(end + 2);
  }
  if (framing.chunked && framing.has_length) return bad("Content-Length and Transfer-Encoding are both given");
  return {};
}

}  // namespace

bool is_token_char(char c) {
  return is_alphanumeric(c) || kTokenPunctuation.find(c) != std::string_view::npos;
}

bool is_control(char c) {
  return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
}

std::size_t find_head_end(std::string_view bytes, std::size_t known) {
  const auto end = bytes.find(kEnd, known < kEnd.size() ? 0 : known - kEnd.size() + 1);
  return end == std::string_view::npos ? end : end + kEnd.size();
}

std::expected<void, HeadFault> check_beginning(std::string_view bytes, std::size_t known) {
  constexpr char kTlsHandshake = 0x16;
  if (bytes.starts_with(kTlsHandshake)) return bad("TLS is not spoken here, expected http://");
  for (std::size_t i = known == 0 ? 0 : known - 1; i < bytes.size(); ++i) {
    const bool line_end = bytes[i] == '\r' ? i + 1 == bytes.size() || bytes[i + 1] == '\n'
                                           : bytes[i] == '\n' && i > 0 && bytes[i - 1] == '\r';
    if (is_control(bytes[i]) && !line_end) return bad("the head has a control character or a lone line end");
  }
  return {};
}

std::expected<void, HeadFault> check_request_head(std::string_view head, std::size_t max_fields) {
  Framing framing;
  const auto checked = check_lines(
      head, max_fields, framing, [&](std::string_view line) { return check_request_line(line, framing); },
      [&](std::string_view name, std::string_view value) { return note_request_field(name, value, framing); });
  if (!checked) return checked;
  if (framing.hosts == 0 && !framing.http_1_0) return bad("Host is missing");
  return {};
}

bool may_become_response(std::string_view bytes) {
  constexpr std::string_view kStart = "HTTP/1.";
  return bytes.size() < kStart.size() ? kStart.starts_with(bytes) : bytes.starts_with(kStart);
}

std::expected<void, std::string> check_response_head(std::string_view head) {
  Framing framing;
  const auto checked =
      check_lines(head, static_cast<std::size_t>(-1), framing, check_status_line,
                  [&](std::string_view name, std::string_view value) { return note_framing(name, value, framing); });
  if (!checked) return std::unexpected(checked.error().detail);
  return {};
}

}  // namespace balanceroute::net
