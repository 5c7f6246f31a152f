#include "calibrate/step_samples.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <memory>
#include <optional>
#include <string_view>

#include "trace/byte_source.hpp"
#include "trace/line_reader.hpp"

namespace balanceroute::calibrate {

namespace {

constexpr std::array<std::string_view, 4> kColumns{"step_ms", "max_tokens", "sequences", "total_tokens"};
constexpr std::size_t kStepMs = 0;
constexpr std::size_t kNeeded = 2;  // of the columns, the first ones
constexpr double kLargest = 1e15;

std::string_view trimmed(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\"");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\"") + 1 - begin);
}

std::vector<std::string_view> fields_of(std::string_view line) {
  std::vector<std::string_view> fields;
  for (std::size_t begin = 0;;) {
    const std::size_t comma = line.find(',', begin);
    fields.push_back(trimmed(line.substr(begin, comma - begin)));
    if (comma == std::string_view::npos) return fields;
    begin = comma + 1;
  }
}

std::optional<double> number(std::string_view text) {
  double value = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// One pass over a file.
class SampleReader {
 public:
  SampleReader(std::string name, trace::ByteSource& source) : name_{std::move(name)}, lines_{source} {
    samples_.source = name_;
  }

  std::expected<StepSamples, std::string> read() {
    const auto header = lines_.next();
    if (!header) return std::unexpected(at_line(header.error()));
    if (!*header) return std::unexpected(name_ + ": is empty; expected a line with the columns step_ms and max_tokens");
    if (auto read = read_header(**header); !read) return std::unexpected(read.error());
    while (true) {
      const auto line = lines_.next();
      if (!line) return std::unexpected(at_line(line.error()));
      if (!*line) return std::move(samples_);
      if (trimmed(**line).empty()) continue;
      if (auto read = read_row(**line); !read) return std::unexpected(read.error());
    }
  }

 private:
  std::string at_line(const std::string& what) const {
    return name_ + ":" + std::to_string(lines_.line_number()) + ": " + what;
  }

  std::expected<void, std::string> read_header(std::string_view line) {
    const auto names = fields_of(line);
    for (std::size_t column = 0; column < kColumns.size(); ++column) {
      const auto found = std::ranges::find(names, kColumns[column]);
      if (found != names.end()) {
        places_[column] = static_cast<std::size_t>(found - names.begin());
      } else if (column < kNeeded) {
        return std::unexpected(
            at_line("no column '" + std::string{kColumns[column]} + "' in '" + std::string{line} + "'"));
      }
    }
    fields_ = names.size();
    return {};
  }

  std::expected<void, std::string> read_row(std::string_view line) {
    const auto fields = fields_of(line);
    if (fields.size() != fields_) {
      return std::unexpected(
          at_line("has " + std::to_string(fields.size()) + " fields, expected " + std::to_string(fields_)));
    }
    const std::array<std::vector<double>*, 4> columns{&samples_.step_ms, &samples_.max_tokens, &samples_.sequences,
                                                      &samples_.total_tokens};
    for (std::size_t column = 0; column < kColumns.size(); ++column) {
      if (!places_[column]) continue;
      const std::string_view text = fields[*places_[column]];
      const auto value = number(text);
      const bool above = column == kStepMs;
      if (!value || *value < 0 || *value > kLargest || (above && *value == 0)) {
        return std::unexpected(at_line(std::string{kColumns[column]} + ": '" + std::string{text} +
                                       "': expected a number " + (above ? "above 0" : "of at least 0")));
      }
      columns[column]->push_back(*value);
    }
    return {};
  }

  std::string name_;
  trace::LineReader lines_;
  std::array<std::optional<std::size_t>, 4> places_{};
  std::size_t fields_ = 0;
  StepSamples samples_;
};

}  // namespace

std::expected<StepSamples, std::string> read_step_samples(const std::filesystem::path& path) {
  auto source = trace::open_file(path);
  if (!source) return std::unexpected(source.error());
  return SampleReader{path.string(), **source}.read();
}

}  // namespace balanceroute::calibrate
