// fields.hpp - values of single fields of a trace row, from text to checked units.
//
// Each function gives the value, or nothing when the text is not one; the row parsers say what was expected.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace balanceroute::trace {

// What is wrong with one field of one row.
struct FieldError {
  std::string field;
  std::string value;
  std::string expected;
};

inline constexpr const char* kExpectedTokens = "a whole number 1..2147483648";
inline constexpr const char* kExpectedWallClock = "a time like 2023-11-16 18:15:46.6805900 or with a zone, +00:00";
inline constexpr const char* kExpectedSeconds = "seconds from the start of the trace, 0..1e9";
inline constexpr const char* kExpectedMilliseconds = "milliseconds from the start of the trace, 0..1e12";

// A whole number in [1, 2^31].
[[nodiscard]] std::optional<Tokens> parse_tokens(std::string_view text);
[[nodiscard]] std::optional<Tokens> checked_tokens(std::int64_t count);

// `YYYY-MM-DD HH:MM:SS`, then optionally a fraction of 1 to 9 digits and a zone (`Z`, `+HH:MM`, `-HH:MM`), since 1970
// in UTC; years 1970 to 2199.
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_wall_clock(std::string_view text);

// A decimal number of seconds in [0, 1e9].
[[nodiscard]] std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text);
[[nodiscard]] std::optional<std::chrono::nanoseconds> checked_seconds(double seconds);

}  // namespace balanceroute::trace
