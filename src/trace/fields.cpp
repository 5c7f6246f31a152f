#include "trace/fields.hpp"

#include <charconv>
#include <chrono>
#include <cmath>
#include <system_error>

#include "core/request.hpp"

namespace balanceroute::trace {
namespace {

// Takes values off the front of a text; once something did not fit, every later result is worthless and ok() is false.
class Scanner {
 public:
  explicit Scanner(std::string_view text) : rest_{text} {}

  [[nodiscard]] bool ok() const { return ok_; }
  [[nodiscard]] bool done() const { return ok_ && rest_.empty(); }

  int digits(std::size_t count) {
    int value = 0;
    for (std::size_t i = 0; i < count; ++i) value = 10 * value + digit();
    return value;
  }
  int digits(std::size_t count, int highest) {
    const int value = digits(count);
    ok_ = ok_ && value <= highest;
    return value;
  }
  void skip(char wanted) { ok_ = take(wanted) && ok_; }
  bool take(char wanted) {
    if (!rest_.starts_with(wanted)) return false;
    rest_.remove_prefix(1);
    return true;
  }
  [[nodiscard]] bool at_digit() const { return !rest_.empty() && rest_.front() >= '0' && rest_.front() <= '9'; }

 private:
  int digit() {
    if (!at_digit()) {
      ok_ = false;
      return 0;
    }
    const int value = rest_.front() - '0';
    rest_.remove_prefix(1);
    return value;
  }

  std::string_view rest_;
  bool ok_ = true;
};

std::optional<std::chrono::sys_days> scan_date(Scanner& scanner) {
  const int year = scanner.digits(4, 2199);
  scanner.skip('-');
  const int month = scanner.digits(2);
  scanner.skip('-');
  const int day = scanner.digits(2);
  const std::chrono::year_month_day date{std::chrono::year{year}, std::chrono::month{static_cast<unsigned>(month)},
                                         std::chrono::day{static_cast<unsigned>(day)}};
  if (!scanner.ok() || year < 1970 || !date.ok()) return std::nullopt;
  return std::chrono::sys_days{date};
}

std::chrono::nanoseconds scan_time_of_day(Scanner& scanner) {
  const std::chrono::hours hours{scanner.digits(2, 23)};
  scanner.skip(':');
  const std::chrono::minutes minutes{scanner.digits(2, 59)};
  scanner.skip(':');
  return hours + minutes + std::chrono::seconds{scanner.digits(2, 59)};
}

std::chrono::nanoseconds scan_fraction(Scanner& scanner) {
  if (!scanner.take('.')) return std::chrono::nanoseconds{0};
  std::chrono::nanoseconds::rep scale = 100'000'000;
  std::chrono::nanoseconds fraction{scanner.digits(1) * scale};
  while (scanner.at_digit() && scale > 1) {
    scale /= 10;
    fraction += std::chrono::nanoseconds{scanner.digits(1) * scale};
  }
  return fraction;
}

std::chrono::minutes scan_zone(Scanner& scanner) {
  if (scanner.take('Z')) return std::chrono::minutes{0};
  const bool east = scanner.take('+');
  if (!east && !scanner.take('-')) return std::chrono::minutes{0};
  const auto hours = std::chrono::hours{scanner.digits(2, 23)};
  scanner.skip(':');
  const auto offset = hours + std::chrono::minutes{scanner.digits(2, 59)};
  return east ? offset : -offset;
}

}  // namespace

std::optional<Tokens> checked_tokens(std::int64_t count) {
  if (count < 1 || count > kMaxTokens.count()) return std::nullopt;
  return Tokens{count};
}

std::optional<Tokens> parse_tokens(std::string_view text) {
  std::int64_t count = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), count);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return checked_tokens(count);
}

std::optional<std::chrono::nanoseconds> parse_wall_clock(std::string_view text) {
  Scanner scanner{text};
  const auto date = scan_date(scanner);
  if (!scanner.take('T')) scanner.skip(' ');
  const auto time = scan_time_of_day(scanner);
  const auto fraction = scan_fraction(scanner);
  const auto zone = scan_zone(scanner);
  if (!date || !scanner.done()) return std::nullopt;
  return std::chrono::nanoseconds{date->time_since_epoch()} + time + fraction - zone;
}

std::optional<std::chrono::nanoseconds> checked_seconds(double seconds) {
  if (!(seconds >= 0 && seconds <= 1e9)) return std::nullopt;
  return std::chrono::nanoseconds{std::llround(seconds * 1e9)};
}

std::optional<std::chrono::nanoseconds> parse_seconds(std::string_view text) {
  double seconds = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (problem != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return checked_seconds(seconds);
}

}  // namespace balanceroute::trace
