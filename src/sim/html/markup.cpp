#include "sim/html/markup.hpp"

#include <fmt/format.h>

#include <cmath>

namespace balanceroute::sim::html {
namespace {

std::string without_trailing_zeros(std::string text) {
  if (text.find('.') == std::string::npos) return text;
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char c : text) {
    switch (c) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        safe += c;
    }
  }
  return safe;
}

std::string short_number(double value) {
  const double size = std::abs(value);
  if (size >= 999'950) return without_trailing_zeros(fmt::format("{:.2f}", value / 1e6)) + "M";
  if (size >= 9'999.5) return without_trailing_zeros(fmt::format("{:.1f}", value / 1e3)) + "k";
  if (size >= 999.5) return fmt::format("{:.0f}", value);
  const int decimals = size >= 100 ? 1 : size >= 10 ? 2 : size >= 0.1 ? 3 : 4;
  std::string text = without_trailing_zeros(fmt::format("{:.{}f}", value, decimals));
  return text == "-0" ? "0" : text;
}

std::string Table::html() const {
  std::string text = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table><caption><span>{}</span></caption>\n<thead><tr>", escaped(caption));
  for (const std::string& title : head) text += fmt::format("<th scope=\"col\">{}</th>", escaped(title));
  text += "</tr></thead>\n<tbody>\n";
  for (const auto& row : rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) {
      text += i == 0 ? fmt::format("<th scope=\"row\">{}</th>", row[i]) : fmt::format("<td>{}</td>", row[i]);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string details(std::string_view summary, std::string_view content) {
  return fmt::format("<details><summary>{}</summary>\n{}</details>\n", escaped(summary), content);
}

}  // namespace balanceroute::sim::html
