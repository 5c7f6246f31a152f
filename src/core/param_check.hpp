// param_check.hpp - whether settings that did not come through a config file keep to their declared ranges.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "core/params.hpp"

namespace balanceroute {

// ParamCheck visits settings and keeps a message about the first that is outside its range, like
// `policy.r_max = 0: expected 1..16`.
class ParamCheck final : public ParamVisitor {
 public:
  explicit ParamCheck(std::string_view prefix = {}) : prefix_{prefix} {}

  [[nodiscard]] const std::optional<std::string>& fault() const { return fault_; }

  void integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) override;
  void real(const ParamInfo& info, double& value, ParamRange<double> range) override;
  void flag(const ParamInfo& info, bool& value) override;
  void text(const ParamInfo& info, std::string& value) override;
  void choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) override;
  void integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                       ParamRange<std::int64_t> range) override;
  void real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) override;
  void texts(const ParamInfo& info, std::vector<std::string>& values) override;
  void integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t> range) override;
  void reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) override;
  void choices(const ParamInfo& info, std::vector<std::string>& values,
               std::span<const std::string_view> options) override;
  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override;
  void list(const ParamInfo& info, const ListAccess& access) override;

 private:
  void blame(const ParamInfo& info, std::string_view value, std::string_view expected);
  // Checks each value of a list, which must not be empty.
  template <class T, class Check>
  void each(const ParamInfo& info, std::vector<T>& values, const Check& check) {
    if (values.empty()) blame(info, "[]", "at least one value");
    for (T& value : values) check(value);
  }

  std::string prefix_;
  std::optional<std::string> fault_;
};

// The first fault of `params`, if any. Works on a copy: a check changes nothing.
template <class Params>
[[nodiscard]] std::optional<std::string> first_fault(Params params, std::string_view prefix = {}) {
  ParamCheck check{prefix};
  params.visit_params(check);
  return check.fault();
}

}  // namespace balanceroute
