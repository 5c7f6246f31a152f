#include "config/setting_visitor.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <optional>
#include <ranges>
#include <utility>

#include "config/text_form.hpp"

namespace balanceroute {
namespace {

// The value of a text that is a number and nothing else.
template <class T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

template <class T>
std::optional<T> number_in(std::string_view text, ParamRange<T> range) {
  const std::optional<T> value = number<T>(text);
  const bool inside = value && *value >= range.low && *value <= range.high;  // false for NaN
  return inside ? value : std::nullopt;
}

std::string spelled(std::int64_t value) {
  return std::to_string(value);
}

// The shortest text that reads back as the same number, without an exponent where people would write none.
std::string spelled(double value) {
  constexpr double kSmallestPlain = 1e-4;
  constexpr double kLargestPlain = 1e15;
  const double size = std::abs(value);
  const bool plain = value == 0 || (size >= kSmallestPlain && size < kLargestPlain);
  std::array<char, 64> buffer{};
  const auto end = plain ? std::to_chars(buffer.data(), buffer.data() + buffer.size(), value, std::chars_format::fixed)
                         : std::to_chars(buffer.data(), buffer.data() + buffer.size(), value);
  return {buffer.data(), end.ptr};
}

template <class T>
std::string spelled(ParamRange<T> range, std::string_view anything) {
  const bool open_below = range.low == std::numeric_limits<T>::lowest();
  const bool open_above = range.high == std::numeric_limits<T>::max();
  if (open_below && open_above) return std::string{anything};
  if (open_below) return "at most " + spelled(range.high);
  if (open_above) return "at least " + spelled(range.low);
  return spelled(range.low) + ".." + spelled(range.high);
}

std::string joined(std::span<const std::string_view> options) {
  std::string all;
  for (const std::string_view option : options) {
    if (!all.empty()) all += ", ";
    all += option;
  }
  return all;
}

template <class T>
bool assign_if(T& value, const std::optional<T>& read) {
  if (read) value = *read;
  return read.has_value();
}

// The values of a text of parts between commas; none if there is no part or `read` finds no value in one.
template <class T, class Read>
std::optional<std::vector<T>> values_in(std::string_view text, const Read& read) {
  std::vector<T> values;
  for (const auto part : text | std::views::split(',')) {
    const std::optional<T> value = read(std::string_view{part.begin(), part.end()});
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  if (values.empty()) return std::nullopt;
  return values;
}

template <class T, class Read>
ScalarSetting list_setting(std::vector<T>& values, const std::string& each, const Read& read,
                           const std::function<std::string(const T&)>& spell) {
  std::string all;
  for (const T& value : values) all += (all.empty() ? "" : ",") + spell(value);
  return {.type = ScalarSetting::Type::list,
          .expected = each + "; more than one parted by commas",
          .value = all,
          .assign = [&values, read](std::string_view text) { return assign_if(values, values_in<T>(text, read)); }};
}

}  // namespace

std::string_view to_string(ScalarSetting::Type type) {
  switch (type) {
    case ScalarSetting::Type::integer:
      return "integer";
    case ScalarSetting::Type::number:
      return "number";
    case ScalarSetting::Type::flag:
      return "flag";
    case ScalarSetting::Type::text:
      return "text";
    case ScalarSetting::Type::choice:
      return "choice";
    case ScalarSetting::Type::list:
      return "list";
  }
  std::unreachable();
}

void SettingVisitor::integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) {
  scalar(info, {.type = ScalarSetting::Type::integer,
                .expected = spelled(range, "an integer"),
                .value = spelled(value),
                .assign = [&value, range](std::string_view text) { return assign_if(value, number_in(text, range)); }});
}

void SettingVisitor::real(const ParamInfo& info, double& value, ParamRange<double> range) {
  scalar(info, {.type = ScalarSetting::Type::number,
                .expected = spelled(range, "a number"),
                .value = spelled(value),
                .assign = [&value, range](std::string_view text) { return assign_if(value, number_in(text, range)); }});
}

void SettingVisitor::flag(const ParamInfo& info, bool& value) {
  scalar(info, {.type = ScalarSetting::Type::flag,
                .expected = "true or false",
                .value = value ? "true" : "false",
                .assign = [&value](std::string_view text) {
                  if (text != "true" && text != "false") return false;
                  value = text == "true";
                  return true;
                }});
}

void SettingVisitor::text(const ParamInfo& info, std::string& value) {
  const bool required = info.required;
  scalar(info, {.type = ScalarSetting::Type::text,
                .expected = "a text",
                .value = value,
                .assign = [&value, required](std::string_view text) {
                  if ((required && text.empty()) || utf8_prefix(text) < text.size()) return false;
                  value = text;
                  return true;
                }});
}

void SettingVisitor::choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) {
  scalar(info, {.type = ScalarSetting::Type::choice,
                .expected = "one of " + joined(options),
                .value = value,
                .assign = [&value, options](std::string_view text) {
                  if (std::ranges::find(options, text) == options.end()) return false;
                  value = text;
                  return true;
                }});
}

void SettingVisitor::integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                                     ParamRange<std::int64_t> range) {
  scalar(info, {.type = ScalarSetting::Type::integer,
                .expected = spelled(range, "an integer") + " or auto",
                .value = value == automatic ? "auto" : spelled(value),
                .assign = [&value, automatic, range](std::string_view text) {
                  if (text != "auto") return assign_if(value, number_in(text, range));
                  value = automatic;
                  return true;
                }});
}

void SettingVisitor::real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) {
  scalar(info, {.type = ScalarSetting::Type::number,
                .expected = spelled(range, "a number") + " or auto",
                .value = value == automatic ? "auto" : spelled(value),
                .assign = [&value, automatic, range](std::string_view text) {
                  if (text != "auto") return assign_if(value, number_in(text, range));
                  value = automatic;
                  return true;
                }});
}

void SettingVisitor::integers(const ParamInfo& info, std::vector<std::int64_t>& values,
                              ParamRange<std::int64_t> range) {
  const auto read = [range](std::string_view text) { return number_in(text, range); };
  scalar(info, list_setting<std::int64_t>(values, spelled(range, "an integer"), read,
                                          [](const std::int64_t& value) { return spelled(value); }));
}

void SettingVisitor::reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) {
  const auto read = [range](std::string_view text) { return number_in(text, range); };
  scalar(info, list_setting<double>(values, spelled(range, "a number"), read,
                                    [](const double& value) { return spelled(value); }));
}

void SettingVisitor::choices(const ParamInfo& info, std::vector<std::string>& values,
                             std::span<const std::string_view> options) {
  const auto read = [options](std::string_view text) -> std::optional<std::string> {
    if (std::ranges::find(options, text) == options.end()) return std::nullopt;
    return std::string{text};
  };
  scalar(info, list_setting<std::string>(values, "one of " + joined(options), read,
                                         [](const std::string& value) { return value; }));
}

void SettingVisitor::section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) {
  descend(path_of(info), visit);
}

void SettingVisitor::list(const ParamInfo& info, const ListAccess& access) {
  for (std::size_t i = 0; i < access.size(); ++i) {
    descend(path_of(info) + "[" + std::to_string(i) + "]", [&](ParamVisitor& inner) { access.visit(i, inner); });
  }
}

void SettingVisitor::descend(std::string_view path, const std::function<void(ParamVisitor&)>& visit) {
  const std::string outer = std::exchange(prefix_, std::string{path} + ".");
  visit(*this);
  prefix_ = outer;
}

}  // namespace balanceroute
