#include "trace/reader.hpp"

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <utility>

#include "trace/byte_source.hpp"
#include "trace/line_reader.hpp"
#include "trace/row_format.hpp"

namespace balanceroute::trace {
namespace {

// A value as it stands in a message: short, on one line, printable.
std::string shown(std::string_view value) {
  constexpr std::size_t kLongest = 60;
  constexpr std::string_view kHex = "0123456789abcdef";
  std::string text{'"'};
  for (const char c : value.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 0x20 && byte < 0x7f) {
      text += c;
    } else {
      text.append("\\x").append({kHex[byte >> 4], kHex[byte & 15]});
    }
  }
  return text + (value.size() > kLongest ? "...\"" : "\"");
}

std::string describe(const FieldError& error) {
  return error.field + " = " + shown(error.value) + ": expected " + error.expected;
}

// Reading is one pass over one source with the state that a message about it needs.
class Reading {
 public:
  Reading(ByteSource& source, std::string path, const ReadOptions& options)
      : lines_{source}, path_{std::move(path)}, options_{options} {}

  std::expected<Trace, std::string> run(std::string name) {
    trace_.name = std::move(name);
    auto line = lines_.next();
    if (!line) return fail(line.error());
    if (!*line) return std::unexpected{path_ + ": is empty: expected a trace"};
    const auto first = without_byte_order_mark(**line);
    const auto format = detect_format(first);
    if (!format) return fail("first line = " + shown(first) + ": expected " + known_formats());
    trace_.kind = format->kind();
    if (!format->first_line_is_header()) {
      if (auto problem = add(first, *format)) return fail(*problem);
    }
    while (!full()) {
      line = lines_.next();
      if (!line) return fail(line.error());
      if (!*line) break;
      if (auto problem = add(**line, *format)) return fail(*problem);
    }
    return finish();
  }

 private:
  static std::string_view without_byte_order_mark(std::string_view line) {
    constexpr std::string_view kMark = "\xef\xbb\xbf";
    return line.starts_with(kMark) ? line.substr(kMark.size()) : line;
  }

  [[nodiscard]] bool full() const { return std::ssize(trace_.requests) >= options_.limit; }

  // Takes one row in; gives the message when it is bad and bad rows are not to be skipped.
  std::optional<std::string> add(std::string_view line, RowFormat& format) {
    if (line.empty()) return std::nullopt;
    auto request = format.parse(line);
    std::string problem;
    if (!request) {
      problem = describe(request.error());
    } else if (!trace_.requests.empty() && request->arrival < latest_) {
      problem = "row = " + shown(line) + ": expected a time not before the row above";
    } else {
      latest_ = request->arrival;
      trace_.requests.push_back(*std::move(request));
      return std::nullopt;
    }
    if (!options_.skip_bad_rows) return problem;
    if (trace_.skipped_rows++ == 0) first_skipped_ = at_line(problem);
    return std::nullopt;
  }

  std::expected<Trace, std::string> finish() {
    if (trace_.requests.empty()) {
      if (trace_.skipped_rows == 0) return std::unexpected{path_ + ": has no rows: expected at least one request"};
      return std::unexpected{path_ + ": no good row, " + std::to_string(trace_.skipped_rows) +
                             " skipped, the first being " + first_skipped_};
    }
    const auto start = trace_.requests.front().arrival;
    for (auto& request : trace_.requests) request.arrival -= start;
    return std::move(trace_);
  }

  [[nodiscard]] std::string at_line(const std::string& problem) const {
    return path_ + ":" + std::to_string(lines_.line_number()) + ": " + problem;
  }
  [[nodiscard]] std::unexpected<std::string> fail(const std::string& problem) const {
    return std::unexpected{at_line(problem)};
  }

  LineReader lines_;
  std::string path_;
  ReadOptions options_;
  Trace trace_;
  std::chrono::nanoseconds latest_{0};
  std::string first_skipped_;
};

}  // namespace

std::unique_ptr<RowFormat> detect_format(std::string_view first_line) {
  if (first_line.starts_with('{')) return make_mooncake_format();
  return detect_csv_format(first_line);
}

std::expected<Trace, std::string> read_trace(const std::filesystem::path& path, const ReadOptions& options) {
  auto source = open_file(path);
  if (!source) return std::unexpected{source.error()};
  return Reading{**source, path.string(), options}.run(path.filename().string());
}

std::expected<Trace, std::string> parse_trace(std::string_view text, const std::string& name,
                                              const ReadOptions& options) {
  const auto source = from_memory(text);
  return Reading{*source, name, options}.run(name);
}

}  // namespace balanceroute::trace
