// setting_visitor.hpp - settings as text: what files, the environment, flags and documents have in common.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "core/params.hpp"

namespace balanceroute {

// ScalarSetting is one value of a visited object, or a list of plain ones parted by commas, seen as text. Lives as long
// as the visited object.
struct ScalarSetting {
  enum class Type : std::uint8_t { integer, number, flag, text, choice, list };

  Type type = Type::text;
  std::string expected;  // what `assign` takes, in words: "1..64", "true or false", "one of load, capacity"
  std::string value;     // the present value; assigning it changes nothing
  std::function<bool(std::string_view)> assign;  // false, and nothing is changed, if the text is not as expected

  [[nodiscard]] bool is_text() const { return type != Type::integer && type != Type::number && type != Type::flag; }

  // What `expected` says that the type does not.
  [[nodiscard]] std::string_view range() const {
    return type == Type::text || type == Type::flag ? std::string_view{} : std::string_view{expected};
  }
};

[[nodiscard]] std::string_view to_string(ScalarSetting::Type type);

// SettingVisitor tells its heirs every value with the path of its name, like `fleets[0].policy.r_max`.
class SettingVisitor : public ParamVisitor {
 public:
  void integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t> range) final;
  void real(const ParamInfo& info, double& value, ParamRange<double> range) final;
  void flag(const ParamInfo& info, bool& value) final;
  void text(const ParamInfo& info, std::string& value) final;
  void choice(const ParamInfo& info, std::string& value, std::span<const std::string_view> options) final;
  void integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                       ParamRange<std::int64_t> range) final;
  void real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double> range) final;
  void integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t> range) final;
  void reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double> range) final;
  void choices(const ParamInfo& info, std::vector<std::string>& values,
               std::span<const std::string_view> options) final;
  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override;
  void list(const ParamInfo& info, const ListAccess& access) override;

 protected:
  virtual void scalar(const ParamInfo& info, const ScalarSetting& setting) = 0;

  [[nodiscard]] std::string path_of(const ParamInfo& info) const { return prefix_ + std::string{info.name}; }

  // Visits the members of what stands at `path`.
  void descend(std::string_view path, const std::function<void(ParamVisitor&)>& visit);

 private:
  std::string prefix_;
};

}  // namespace balanceroute
