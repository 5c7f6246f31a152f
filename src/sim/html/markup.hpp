// markup.hpp - small pieces of HTML: text made safe, numbers made short.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace balanceroute::sim::html {

// Text as content or as the value of an attribute in double quotes.
[[nodiscard]] std::string escaped(std::string_view text);

// Four significant digits at most, thousands and millions as k and M: 950, 12.3k, 0.0417.
[[nodiscard]] std::string short_number(double value);

// A table whose first column is a row's name. Its cells are HTML already; `caption` is not.
struct Table {
  std::string caption;
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;

  [[nodiscard]] std::string html() const;
};

// Something that is unfolded on request.
[[nodiscard]] std::string details(std::string_view summary, std::string_view content);

}  // namespace balanceroute::sim::html
