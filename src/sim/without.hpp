// without.hpp - a look at settings that leaves some out, which their reader declares in another way (as lists).
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string_view>
#include <vector>

#include "core/params.hpp"

namespace balanceroute::sim {

// Without passes on every setting but those of the given names.
class Without final : public ParamVisitor {
 public:
  Without(ParamVisitor& inner, std::initializer_list<std::string_view> names) : inner_{inner}, names_{names} {}

  void integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) override {
    if (passes(info)) inner_.integer(info, value, range);
  }
  void real(const ParamInfo& info, double& value, ParamRange<double> range) override {
    if (passes(info)) inner_.real(info, value, range);
  }
  void flag(const ParamInfo& info, bool& value) override {
    if (passes(info)) inner_.flag(info, value);
  }
  void text(const ParamInfo& info, std::string& value) override {
    if (passes(info)) inner_.text(info, value);
  }
  void choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) override {
    if (passes(info)) inner_.choice(info, value, options);
  }
  void integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                       ParamRange<std::int64_t> range) override {
    if (passes(info)) inner_.integer_or_auto(info, value, automatic, range);
  }
  void real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) override {
    if (passes(info)) inner_.real_or_auto(info, value, automatic, range);
  }
  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    if (passes(info)) inner_.texts(info, values);
  }
  void integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t> range) override {
    if (passes(info)) inner_.integers(info, values, range);
  }
  void reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) override {
    if (passes(info)) inner_.reals(info, values, range);
  }
  void choices(const ParamInfo& info, std::vector<std::string>& values,
               std::span<const std::string_view> options) override {
    if (passes(info)) inner_.choices(info, values, options);
  }
  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override {
    if (passes(info)) inner_.section(info, visit);
  }
  void list(const ParamInfo& info, const ListAccess& access) override {
    if (passes(info)) inner_.list(info, access);
  }

 private:
  [[nodiscard]] bool passes(const ParamInfo& info) const {
    return std::ranges::find(names_, info.name) == names_.end();
  }

  ParamVisitor& inner_;
  std::vector<std::string_view> names_;
};

}  // namespace balanceroute::sim
