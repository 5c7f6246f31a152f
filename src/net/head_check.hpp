// head_check.hpp - refuses heads that two servers could read differently, before they are parsed.
//
// Boost.Beast 1.81 lets pass what an engine behind us may understand otherwise: `Transfer-Encoding: xchunked` as no
// body, repeated Content-Length, obs-fold, two Hosts. That is how requests are smuggled, so the raw head is checked
// before it is parsed; the answers of engines too, because a client behind us may do the same with them.
// Source: RFC 9112, sections 2.2, 3, 4, 5, 6.1 and 6.3; what is stricter than that: docs/decisions/0016.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace balanceroute::net {

// Why a request is refused, as its client is told.
struct HeadFault {
  int status;
  std::string detail;
};

// The end of the head in `bytes` (just after the empty line), npos when it is not there yet. The first `known` bytes
// have been looked at before.
std::size_t find_head_end(std::string_view bytes, std::size_t known = 0);

// What can be said of a request whose head has not come to its end, so that nobody waits for an end that never comes:
// another protocol, lone line ends, control characters. The first `known` bytes have passed before.
std::expected<void, HeadFault> check_beginning(std::string_view bytes, std::size_t known = 0);

// `head` ends with its empty line, and has at most `max_fields` fields.
std::expected<void, HeadFault> check_request_head(std::string_view head, std::size_t max_fields);

// Whether more bytes can make an answer of these.
bool may_become_response(std::string_view bytes);

// The same of an answer as of a request; the error says in words what is wrong.
std::expected<void, std::string> check_response_head(std::string_view head);

// Of a method or a field's name (RFC 9110, 5.6.2).
bool is_token_char(char c);
// Other than a tab.
bool is_control(char c);

}  // namespace balanceroute::net
