#include "telemetry/json_lines.hpp"

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/details/log_msg.h>
#include <spdlog/formatter.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <nlohmann/json.hpp>
#include <optional>

namespace balanceroute::telemetry {

namespace {

constexpr std::array<std::string_view, 6> kUnits{"_ms", "_tokens", "_bytes", "_seconds", "_ratio", "_requests"};
constexpr std::array<std::string_view, 5> kNumbers{"status", "rank", "tries", "score", "limit"};
// Members that are there already.
constexpr std::array<std::string_view, 4> kTaken{"time", "level", "logger", "message"};

struct Field {
  std::string_view key;
  std::string value;
  bool quoted;
  std::size_t end;  // of its text in the line
};

bool is_key_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
}

std::optional<std::size_t> hex_digit(char c) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::size_t at = kDigits.find(c);
  return at == std::string_view::npos ? std::nullopt : std::optional{at};
}

// The quoted value that begins at `at`, and where it ends; nothing if it does not end.
std::optional<std::pair<std::string, std::size_t>> read_quoted(std::string_view line, std::size_t at) {
  std::string value;
  for (std::size_t i = at + 1; i < line.size(); ++i) {
    if (line[i] == '"') return std::pair{std::move(value), i + 1};
    if (line[i] != '\\' || i + 1 == line.size()) {
      value.push_back(line[i]);
      continue;
    }
    ++i;
    const bool is_byte = line[i] == 'x' && i + 2 < line.size() && hex_digit(line[i + 1]) && hex_digit(line[i + 2]);
    if (!is_byte) {
      value.push_back(line[i]);
      continue;
    }
    value.push_back(static_cast<char>(*hex_digit(line[i + 1]) * 16 + *hex_digit(line[i + 2])));
    i += 2;
  }
  return std::nullopt;
}

// The field that begins at `at`.
std::optional<Field> read_field(std::string_view line, std::size_t at) {
  std::size_t equals = at;
  while (equals < line.size() && is_key_char(line[equals])) ++equals;
  if (equals == at || equals == line.size() || line[equals] != '=') return std::nullopt;
  const std::string_view key = line.substr(at, equals - at);
  if (std::ranges::find(kTaken, key) != kTaken.end()) return std::nullopt;
  const std::size_t begin = equals + 1;
  if (begin < line.size() && line[begin] == '"') {
    auto quoted = read_quoted(line, begin);
    if (!quoted || (quoted->second < line.size() && line[quoted->second] != ' ')) return std::nullopt;
    return Field{.key = key, .value = std::move(quoted->first), .quoted = true, .end = quoted->second};
  }
  const std::size_t end = std::min(line.find(' ', begin), line.size());
  return Field{.key = key, .value = std::string{line.substr(begin, end - begin)}, .quoted = false, .end = end};
}

bool counts_or_measures(std::string_view key) {
  return std::ranges::any_of(kUnits, [key](std::string_view unit) { return key.ends_with(unit); }) ||
         std::ranges::find(kNumbers, key) != kNumbers.end();
}

template <class Number>
std::optional<Number> number_in(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, number);
  return read.ec == std::errc{} && read.ptr == end ? std::optional{number} : std::nullopt;
}

nlohmann::ordered_json value_of(const Field& field) {
  if (field.quoted || !counts_or_measures(field.key)) return field.value;
  if (field.key.ends_with("_ms") && field.value == "-1.0") return nullptr;
  if (const auto whole = number_in<std::int64_t>(field.value)) return *whole;
  if (const auto number = number_in<double>(field.value)) return *number;
  return field.value;
}

class JsonFormatter final : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& line, spdlog::memory_buf_t& out) override {
    const auto level = spdlog::level::to_string_view(line.level);
    const auto time = std::chrono::time_point_cast<std::chrono::milliseconds>(line.time);
    const auto second = std::chrono::time_point_cast<std::chrono::seconds>(time);
    fmt::format_to(std::back_inserter(out), R"({{"time":"{:%Y-%m-%dT%H:%M:%S}.{:03}Z","level":"{}","logger":"{}",{}}})",
                   fmt::gmtime(second), (time - second).count(), std::string_view{level.data(), level.size()},
                   std::string_view{line.logger_name.data(), line.logger_name.size()},
                   to_json_members({line.payload.data(), line.payload.size()}));
    out.push_back('\n');
  }
  [[nodiscard]] std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

}  // namespace

std::string to_json_members(std::string_view line) {
  std::string message;
  nlohmann::ordered_json members{{"message", ""}};
  for (std::size_t at = 0; at < line.size();) {
    auto field = read_field(line, at);
    if (field && !members.contains(field->key)) {
      members[std::string{field->key}] = value_of(*field);
      at = std::min(field->end + 1, line.size());
      continue;
    }
    const std::size_t end = std::min(line.find(' ', at), line.size());
    if (!message.empty()) message.push_back(' ');
    message.append(line.substr(at, end - at));
    at = std::min(end + 1, line.size());
  }
  members["message"] = message;
  // What is no UTF-8 is replaced: a collector reads UTF-8 or nothing.
  std::string object = members.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
  return object.substr(1, object.size() - 2);
}

std::unique_ptr<spdlog::formatter> make_json_formatter() {
  return std::make_unique<JsonFormatter>();
}

}  // namespace balanceroute::telemetry
