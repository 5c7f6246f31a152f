#include "config/environment.hpp"

#include <algorithm>
#include <regex>
#include <utility>
#include <vector>

#include "config/nearest.hpp"
#include "config/setting_visitor.hpp"
#include "config/text_form.hpp"

namespace balanceroute {
namespace {

constexpr std::string_view kPrefix = "BALANCEROUTE_";

// Kubernetes gives every container such variables for every service of its namespace; for one named `balanceroute` they
// are BALANCEROUTE_PORT, BALANCEROUTE_SERVICE_HOST and more.
bool is_service_link(const std::string& name) {
  static const std::regex kServiceLink{
      "BALANCEROUTE_(.+_)?(SERVICE_HOST|SERVICE_PORT(_.+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)"};
  constexpr std::size_t kLongestName = 256;  // std::regex takes stack for every character
  return name.size() <= kLongestName && std::regex_match(name, kServiceLink);
}

// EnvironmentReader takes the value of every setting that has a variable.
class EnvironmentReader final : public SettingVisitor {
 public:
  explicit EnvironmentReader(const Environment& environment) : unread_{environment} {}

  // Ends the visit.
  [[nodiscard]] std::expected<GivenSettings, ConfigError> finish() {
    for (const auto& [name, value] : unread_) {
      if (is_service_link(name)) continue;
      const auto is_part = [&name](const std::string& list) { return name == list || name.starts_with(list + "_"); };
      if (std::ranges::any_of(lists_, is_part)) {
        problems_.push_back(name + ": a list cannot be set in the environment; use the configuration file");
      } else {
        problems_.push_back(name + ": unknown variable; " + suggestion(name, names_));
      }
    }
    if (!problems_.empty()) return std::unexpected(ConfigError{std::move(problems_)});
    return std::move(given_);
  }

  void texts(const ParamInfo& info, std::vector<std::string>&) override {
    lists_.push_back(variable_name(path_of(info)));
  }
  void list(const ParamInfo& info, const ListAccess&) override { lists_.push_back(variable_name(path_of(info))); }

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    const std::string path = path_of(info);
    const std::string name = variable_name(path);
    names_.push_back(name);
    const auto variable = unread_.extract(name);
    if (variable.empty()) return;
    const std::string& value = variable.mapped();
    if (setting.assign(value)) {
      given_.insert_or_assign(path, value);
    } else {
      problems_.push_back(name + " = " + (info.secret ? "(hidden)" : shown(value)) + ": expected " + setting.expected);
    }
  }

 private:
  Environment unread_;
  std::vector<std::string> names_;
  std::vector<std::string> lists_;
  GivenSettings given_;
  std::vector<std::string> problems_;
};

}  // namespace

Environment own_variables(const char* const* variables) {
  Environment own;
  for (; *variables != nullptr; ++variables) {
    const std::string_view variable{*variables};
    const std::size_t end = variable.find('=');
    if (!variable.starts_with(kPrefix) || end == std::string_view::npos) continue;
    own.emplace(variable.substr(0, end), variable.substr(end + 1));
  }
  return own;
}

std::string variable_name(std::string_view path) {
  std::string name{kPrefix};
  for (const char c : path) {
    const bool lower = c >= 'a' && c <= 'z';
    name += c == '.' ? '_' : static_cast<char>(lower ? c - 'a' + 'A' : c);
  }
  return name;
}

std::expected<GivenSettings, ConfigError> visit_environment(const Environment& environment,
                                                            const std::function<void(ParamVisitor&)>& params) {
  EnvironmentReader reader{environment};
  params(reader);
  return reader.finish();
}

}  // namespace balanceroute
