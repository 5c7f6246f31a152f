// head_check.hpp - refuses request heads that two servers could read differently.
//
// Boost.Beast 1.81 lets pass what an engine behind us may understand otherwise: `Transfer-Encoding: xchunked` as no
// body, repeated Content-Length, obs-fold, two Hosts. That is how requests are smuggled, so the raw head is checked
// before it is parsed. Source: RFC 9112, sections 3.2, 5.2, 6.1 and 6.3.
#pragma once

#include <cstddef>
#include <expected>
#include <string>
#include <string_view>

namespace balanceroute::net {

// The end of the head in `bytes` (just after the empty line), npos when it is not there yet.
std::size_t find_head_end(std::string_view bytes);

// `head` ends with its empty line. The error says in words what is wrong.
std::expected<void, std::string> check_request_head(std::string_view head);

}  // namespace balanceroute::net
