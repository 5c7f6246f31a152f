#include "sim/settings.hpp"

#include <utility>

namespace balanceroute::sim {
namespace {

using Json = nlohmann::ordered_json;

// Writes settings as they are named in config files.
class SettingsWriter final : public ParamVisitor {
 public:
  explicit SettingsWriter(Json& object) : object_{&object} {}

  void integer(const ParamInfo& info, std::int64_t& value, ParamRange<std::int64_t>) override { put(info, value); }
  void real(const ParamInfo& info, double& value, ParamRange<double>) override { put(info, value); }
  void flag(const ParamInfo& info, bool& value) override { put(info, value); }
  void text(const ParamInfo& info, std::string& value) override { put(info, value); }
  void choice(const ParamInfo& info, std::string& value, std::span<const std::string_view>) override {
    put(info, value);
  }
  void integer_or_auto(const ParamInfo& info, std::int64_t& value, std::int64_t automatic,
                       ParamRange<std::int64_t>) override {
    value == automatic ? put(info, "auto") : put(info, value);
  }
  void real_or_auto(const ParamInfo& info, double& value, double automatic, ParamRange<double>) override {
    value == automatic ? put(info, "auto") : put(info, value);
  }
  void texts(const ParamInfo& info, std::vector<std::string>& values) override { put(info, values); }
  void integers(const ParamInfo& info, std::vector<std::int64_t>& values, ParamRange<std::int64_t>) override {
    put(info, values);
  }
  void reals(const ParamInfo& info, std::vector<double>& values, ParamRange<double>) override { put(info, values); }
  void choices(const ParamInfo& info, std::vector<std::string>& values, std::span<const std::string_view>) override {
    put(info, values);
  }
  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override {
    SettingsWriter inner{(*object_)[std::string{info.name}] = Json::object()};
    visit(inner);
  }
  void list(const ParamInfo& info, const ListAccess& access) override {
    Json& entries = (*object_)[std::string{info.name}] = Json::array();
    for (std::size_t i = 0; i < access.size(); ++i) {
      SettingsWriter inner{entries.emplace_back(Json::object())};
      access.visit(i, inner);
    }
  }

 private:
  template <class T>
  void put(const ParamInfo& info, const T& value) {
    (*object_)[std::string{info.name}] = value;
  }

  Json* object_;
};

}  // namespace

nlohmann::ordered_json settings_of(PolicyParams policy) {
  Json settings = Json::object();
  SettingsWriter writer{settings};
  policy.visit_settings(writer);
  return settings;
}

nlohmann::ordered_json settings_of(SimulateParams params, const PolicyParams& policy) {
  params.policy_settings = with_preset(policy);  // what auto came to
  params.step_time = params.step_time.resolved();
  Json settings = Json::object();
  SettingsWriter writer{settings};
  params.visit_settings(writer);
  return settings;
}

}  // namespace balanceroute::sim
