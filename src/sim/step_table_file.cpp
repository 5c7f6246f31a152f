#include "sim/step_table_file.hpp"

#include <charconv>
#include <optional>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "trace/byte_source.hpp"
#include "trace/line_reader.hpp"

namespace balanceroute::sim {
namespace {

using Point = StepTable::Point;

constexpr std::string_view kHeader = "tokens,ms";
constexpr std::size_t kMostRows = 100'000;

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

// A row that may follow those before it, or what was expected instead.
std::expected<Point, std::string> parse(std::string_view line, const std::vector<Point>& before) {
  const auto comma = line.find(',');
  const auto load = number(line.substr(0, comma));
  const auto ms = comma == std::string_view::npos ? std::nullopt : number(line.substr(comma + 1));
  const std::string said = "row = \"" + std::string{line.substr(0, 60)} + "\": expected ";
  if (!load || !ms || !(*load >= 0 && *load <= 1e15) || !(*ms > 0 && *ms <= 1e6)) {
    return std::unexpected(said + "tokens 0..1e15 and ms above 0, to 1e6");
  }
  if (!before.empty() && *load <= before.back().load) return std::unexpected(said + "more tokens than the row above");
  if (!before.empty() && *ms < before.back().ms) return std::unexpected(said + "no fewer ms than the row above");
  return Point{.load = *load, .ms = *ms};
}

}  // namespace

std::expected<StepTable, std::string> read_step_table(const std::filesystem::path& path) {
  const auto source = trace::open_file(path);
  if (!source) return std::unexpected(source.error());
  trace::LineReader lines{**source};
  std::vector<Point> points;
  const auto fail = [&](const std::string& problem) {
    return std::unexpected(path.string() + ":" + std::to_string(lines.line_number()) + ": " + problem);
  };
  while (true) {
    const auto line = lines.next();
    if (!line) return fail(line.error());
    if (!*line) break;
    if (lines.line_number() == 1) {
      if (**line != kHeader) return fail("expected the header " + std::string{kHeader});
    } else if (!(*line)->empty()) {
      auto point = parse(**line, points);
      if (!point) return fail(point.error());
      if (points.size() == kMostRows) return fail("expected at most " + std::to_string(kMostRows) + " rows");
      points.push_back(*point);
    }
  }
  if (points.size() < 2)
    return std::unexpected(path.string() + ": expected at least two rows of " + std::string{kHeader});
  return StepTable{std::move(points)};
}

}  // namespace balanceroute::sim
