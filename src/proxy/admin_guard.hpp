// admin_guard.hpp - whether a request to the admin listener may come from a web page of somebody else.
//
// A browser of an operator reaches the listener on loopback, and so does every page that it shows: without a token such
// a page could drain workers. Leaves out the token (admin.hpp).
#pragma once

#include <optional>
#include <string>

#include "net/http.hpp"

namespace balanceroute::proxy {

// Why the request is refused, in words; none if it may pass.
//   Changes  (neither GET nor HEAD) come from no page, or from one of this listener's own.
//   Names    without a token the Host is an address or localhost, so that no name of somebody else's points here and
//            lets his page read (DNS rebinding). Health and metrics may be asked under any name.
[[nodiscard]] std::optional<std::string> foreign_page(const net::HttpRequest& request, bool has_token);

}  // namespace balanceroute::proxy
