// line_reader.hpp - cuts a byte source into lines without trusting it: a line has a largest length.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "trace/byte_source.hpp"

namespace balanceroute::trace {

// LineReader yields the lines of a byte source, one at a time, without their ends (LF or CRLF).
//   Lifetime  a line is valid until the next call; kPadding readable bytes follow it (a JSON parser wants them).
//   Cost      memory is bounded by kMaxLineBytes, whatever the source holds.
//   Errors    a line longer than kMaxLineBytes ends the reading; the rest of it is never read.
class LineReader {
 public:
  static constexpr std::size_t kMaxLineBytes = std::size_t{1} << 20;
  static constexpr std::size_t kPadding = 64;

  explicit LineReader(ByteSource& source);

  // Nothing at the end of the source; the last line needs no line end.
  [[nodiscard]] std::expected<std::optional<std::string_view>, std::string> next();

  // Number of the line that next() gave last, from 1.
  [[nodiscard]] std::int64_t line_number() const { return line_number_; }

 private:
  [[nodiscard]] std::expected<bool, std::string> fill();
  [[nodiscard]] std::string_view take(std::size_t length, std::size_t line_end);

  ByteSource* source_;
  std::vector<char> buffer_;
  std::size_t begin_ = 0;  // first byte not yet handed out
  std::size_t end_ = 0;    // end of the bytes read
  std::int64_t line_number_ = 0;
};

}  // namespace balanceroute::trace
