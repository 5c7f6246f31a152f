#include "config/setting_values.hpp"

#include <utility>

#include "config/setting_visitor.hpp"

namespace balanceroute {
namespace {

class ValueCollector final : public SettingVisitor {
 public:
  explicit ValueCollector(Secrets secrets) : secrets_{secrets} {}

  SettingValues take() { return std::move(values_); }

  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    std::string all;
    for (const std::string& value : values) all += (all.empty() ? "" : ",") + value;
    values_[path_of(info)] = all;
  }

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    const bool hides = info.secret && secrets_ == Secrets::hidden;
    values_[path_of(info)] = hides ? (setting.value.empty() ? "" : "(set)") : setting.value;
  }

 private:
  Secrets secrets_;
  SettingValues values_;
};

}  // namespace

SettingValues visit_values(const std::function<void(ParamVisitor&)>& params, Secrets secrets) {
  ValueCollector collector{secrets};
  params(collector);
  return collector.take();
}

std::vector<std::string> differences(const SettingValues& before, const SettingValues& after) {
  std::vector<std::string> paths;
  for (const auto& [path, value] : before) {
    const auto other = after.find(path);
    if (other == after.end() || other->second != value) paths.push_back(path);
  }
  for (const auto& [path, value] : after) {
    if (!before.contains(path)) paths.push_back(path);
  }
  return paths;
}

}  // namespace balanceroute
