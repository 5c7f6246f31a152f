#include "config/given_settings.hpp"

#include <ranges>

#include "config/setting_visitor.hpp"

namespace balanceroute {
namespace {

class Assigner final : public SettingVisitor {
 public:
  explicit Assigner(const GivenSettings& given) : given_{given} {}

  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    if (const auto found = given_.find(path_of(info)); found != given_.end()) values = split_at_commas(found->second);
  }
  void list(const ParamInfo&, const ListAccess&) override {}

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    if (const auto found = given_.find(path_of(info)); found != given_.end()) setting.assign(found->second);
  }

 private:
  const GivenSettings& given_;
};

}  // namespace

void apply_given(const GivenSettings& given, const std::function<void(ParamVisitor&)>& params) {
  Assigner assigner{given};
  params(assigner);
}

std::vector<std::string> split_at_commas(std::string_view text) {
  std::vector<std::string> parts;
  if (text.empty()) return parts;
  for (const auto part : text | std::views::split(',')) parts.emplace_back(part.begin(), part.end());
  return parts;
}

}  // namespace balanceroute
