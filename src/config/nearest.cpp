#include "config/nearest.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

namespace balanceroute {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last;
  std::vector<std::size_t> last(b.size() + 1);
  std::iota(last.begin(), last.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::vector<std::size_t> row(b.size() + 1, i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (a[i - 1] == b[j - 1] ? 0U : 1U)});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    before_last = std::move(last);
    last = std::move(row);
  }
  return last.back();
}

std::string suggestion(std::string_view unknown, std::span<const std::string> known) {
  constexpr std::size_t kLongestName = 128;  // a text that is longer is no slip of the keyboard
  if (known.empty()) return "expected nothing here";
  if (unknown.size() <= kLongestName) {
    const auto distance = [unknown](const std::string& name) { return edit_distance(unknown, name); };
    const std::string& nearest = *std::ranges::min_element(known, {}, distance);
    if (distance(nearest) <= std::max<std::size_t>(2, unknown.size() / 3)) return "did you mean " + nearest + "?";
  }
  std::string all;
  for (const std::string& name : known) all += (all.empty() ? "expected one of " : ", ") + name;
  return all;
}

}  // namespace balanceroute
