#include "config/flags.hpp"

#include <CLI/App.hpp>
#include <utility>
#include <vector>

#include "config/setting_visitor.hpp"
#include "config/text_form.hpp"

namespace balanceroute {
namespace {

std::string_view placeholder(ScalarSetting::Type type) {
  switch (type) {
    case ScalarSetting::Type::integer:
      return "N";
    case ScalarSetting::Type::number:
      return "X";
    case ScalarSetting::Type::flag:
      return "true|false";
    case ScalarSetting::Type::text:
    case ScalarSetting::Type::choice:
      return "TEXT";
    case ScalarSetting::Type::list:
      return "VALUE,...";
  }
  std::unreachable();
}

// "Largest body. [1..1000000; default 1024]"
std::string help_text(const ParamInfo& info, std::string_view range, std::string_view standard) {
  std::string notes{range};
  const auto add = [&notes](const std::string& note) { notes += (notes.empty() ? "" : "; ") + note; };
  if (info.required) {
    add("required");
  } else if (!standard.empty() && !info.secret) {
    add("default " + std::string{standard});
  }
  return std::string{info.doc} + (notes.empty() ? "" : " [" + notes + "]");
}

class FlagAdder final : public SettingVisitor {
 public:
  FlagAdder(CLI::App& app, GivenSettings* given) : app_{app}, given_{given} {}

  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    add(info, "TEXT,...", help_text(info, "", ""), "texts, parted by commas", [&values](std::string_view text) {
      values = split_at_commas(text);
      return true;
    });
  }

  // Entries of a list have no names, so there can be no flags for them.
  void list(const ParamInfo&, const ListAccess&) override {}

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    const bool is_flag = setting.type == ScalarSetting::Type::flag;
    CLI::Option* option = add(info, placeholder(setting.type), help_text(info, setting.range(), setting.value),
                              setting.expected, setting.assign, is_flag ? "true" : "");
    if (is_flag) option->expected(0, 1);
  }

 private:
  // `alone` is what a flag without a value means; nothing where it must have one.
  CLI::Option* add(const ParamInfo& info, std::string_view placeholder, std::string help, const std::string& expected,
                   const std::function<bool(std::string_view)>& assign, const std::string& alone = {}) {
    const std::string path = path_of(info);
    const std::string name = flag_name(path);
    const std::function<void(const std::string&)> take = [=, secret = info.secret,
                                                          given = given_](const std::string& typed) {
      const std::string& text = typed.empty() ? alone : typed;
      if (!assign(text)) {
        throw CLI::ValidationError(name + " = " + (secret ? "(hidden)" : shown(text)) + ": expected " + expected,
                                   CLI::ExitCodes::ValidationError);
      }
      if (given) given->insert_or_assign(path, text);
    };
    CLI::Option* option = app_.add_option_function<std::string>(name, take, std::move(help));
    option->type_name(std::string{placeholder});
    if (info.required && !given_) option->required();  // there is no other place it could come from
    return option;
  }

  CLI::App& app_;
  GivenSettings* given_;
};

}  // namespace

void add_flags(CLI::App& app, const std::function<void(ParamVisitor&)>& params, GivenSettings* given) {
  FlagAdder adder{app, given};
  params(adder);
}

std::string flag_name(std::string_view path) {
  std::string name = "--";
  for (const char c : path) name += c == '.' || c == '_' ? '-' : c;
  return name;
}

}  // namespace balanceroute
