// page.hpp - the frame of a report: one page that needs nothing else, for every width, light or dark.
#pragma once

#include <string>
#include <string_view>

namespace balanceroute::sim::html {

// `title` is text, `body` is HTML.
[[nodiscard]] std::string page(std::string_view title, std::string_view body);

}  // namespace balanceroute::sim::html
