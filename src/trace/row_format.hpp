// row_format.hpp - how one kind of trace file writes a request on a line.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>

#include "trace/fields.hpp"
#include "trace/trace.hpp"

namespace balanceroute::trace {

// RowFormat turns lines of one kind of trace into requests, whose arrival is still on the file's own clock.
//   Lines    must have LineReader::kPadding readable bytes behind them.
//   Threads  not synchronised; parse() may reuse memory between calls.
class RowFormat {
 public:
  virtual ~RowFormat() = default;

  [[nodiscard]] virtual TraceKind kind() const = 0;
  [[nodiscard]] virtual bool first_line_is_header() const = 0;
  [[nodiscard]] virtual std::expected<TraceRequest, FieldError> parse(std::string_view line) = 0;
};

// The format whose header, or first row, `first_line` is; null when it is none that is known.
[[nodiscard]] std::unique_ptr<RowFormat> detect_format(std::string_view first_line);

// The CSV formats alone (csv_format.cpp), and the one format of JSON lines (mooncake_format.cpp).
[[nodiscard]] std::unique_ptr<RowFormat> detect_csv_format(std::string_view header);
[[nodiscard]] std::unique_ptr<RowFormat> make_mooncake_format();

// What detect_format() accepts, for the message of a refusal.
[[nodiscard]] std::string known_formats();

}  // namespace balanceroute::trace
