#include "core/param_check.hpp"

#include <algorithm>
#include <sstream>

namespace balanceroute {
namespace {

// The shortest usual spelling of a number.
template <class T>
std::string spelled(T value) {
  std::ostringstream text;
  text << value;
  return text.str();
}

template <class T>
std::string spelled(ParamRange<T> range) {
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

}  // namespace

void ParamCheck::blame(const ParamInfo& info, std::string_view value, std::string_view expected) {
  if (fault_) return;
  fault_ = prefix_ + std::string{info.name} + " = " + std::string{value} + ": expected " + std::string{expected};
}

void ParamCheck::integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) {
  if (value < range.low || value > range.high) blame(info, spelled(value), spelled(range));
}

void ParamCheck::real(const ParamInfo& info, double& value, ParamRange<double> range) {
  const bool inside = value >= range.low && value <= range.high;  // false for NaN
  if (!inside) blame(info, spelled(value), spelled(range));
}

void ParamCheck::flag(const ParamInfo&, bool&) {}

void ParamCheck::text(const ParamInfo& info, std::string& value) {
  if (info.required && value.empty()) blame(info, "\"\"", "a text");
}

void ParamCheck::choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) {
  if (std::ranges::find(options, value) == options.end()) blame(info, value, "one of " + joined(options));
}

void ParamCheck::integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                                 ParamRange<std::int64_t> range) {
  if (value == automatic) return;
  if (value < range.low || value > range.high) blame(info, spelled(value), spelled(range) + " or auto");
}

void ParamCheck::real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) {
  const bool fine = value == automatic || (value >= range.low && value <= range.high);  // false for NaN
  if (!fine) blame(info, spelled(value), spelled(range) + " or auto");
}

void ParamCheck::texts(const ParamInfo& info, std::vector<std::string>& values) {
  if (info.required && values.empty()) blame(info, "[]", "at least one text");
}

void ParamCheck::integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t> range) {
  each(info, values, [&](std::int64_t& value) { integer(info, value, range); });
}

void ParamCheck::reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) {
  each(info, values, [&](double& value) { real(info, value, range); });
}

void ParamCheck::choices(const ParamInfo& info, std::vector<std::string>& values,
                         std::span<const std::string_view> options) {
  each(info, values, [&](std::string& value) { choice(info, value, options); });
}

void ParamCheck::section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) {
  const std::string outer = prefix_;
  prefix_ += std::string{info.name} + ".";
  visit(*this);
  prefix_ = outer;
}

void ParamCheck::list(const ParamInfo& info, const ListAccess& access) {
  if (info.required && access.size() == 0) blame(info, "[]", "at least one entry");
  const std::string outer = prefix_;
  for (std::size_t i = 0; i < access.size(); ++i) {
    prefix_ = outer + std::string{info.name} + "[" + std::to_string(i) + "].";
    access.visit(i, *this);
  }
  prefix_ = outer;
}

}  // namespace balanceroute
