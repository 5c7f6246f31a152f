#include "config/show.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "config/setting_visitor.hpp"
#include "config/text_form.hpp"

namespace balanceroute {
namespace {

class YamlWriter final : public SettingVisitor {
 public:
  explicit YamlWriter(const Origins& origins) : origins_{origins} {}

  [[nodiscard]] std::string take() { return written_.empty() ? "{}\n" : std::move(written_); }

  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    std::string all;
    for (const std::string& value : values) all += (all.empty() ? "" : ", ") + yaml_text(value);
    write(info, "[" + all + "]");
  }

  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override {
    line(std::string{info.name} + ":");
    indented(path_of(info), visit);
  }

  void list(const ParamInfo& info, const ListAccess& access) override {
    if (access.size() == 0) return write(info, "[]");
    line(std::string{info.name} + ":  # " + origin(path_of(info)));
    indent_ += kStep;
    for (std::size_t i = 0; i < access.size(); ++i) {
      starts_entry_ = true;
      indented(path_of(info) + "[" + std::to_string(i) + "]", [&](ParamVisitor& inner) { access.visit(i, inner); });
    }
    indent_ -= kStep;
  }

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    if (info.secret && !setting.value.empty())
      return line("# " + std::string{info.name} + " is set  # " + origin(path_of(info)));
    write(info, setting.is_text() ? yaml_text(setting.value) : setting.value);
  }

 private:
  static constexpr std::size_t kStep = 2;

  // In a comment, which ends with the line, whatever the name of a file may be.
  [[nodiscard]] std::string origin(const std::string& path) const {
    const auto found = origins_.find(path);
    std::string text = found == origins_.end() ? "default" : found->second;
    std::ranges::replace_if(text, [](char c) { return static_cast<unsigned char>(c) < 0x20; }, '?');
    return text;
  }

  void write(const ParamInfo& info, const std::string& value) {
    line(std::string{info.name} + ": " + value + "  # " + origin(path_of(info)));
  }

  void line(const std::string& text) {
    written_ += std::string(starts_entry_ ? indent_ - kStep : indent_, ' ') + (starts_entry_ ? "- " : "") + text + "\n";
    starts_entry_ = false;
  }

  void indented(std::string_view path, const std::function<void(ParamVisitor&)>& visit) {
    indent_ += kStep;
    descend(path, visit);
    indent_ -= kStep;
  }

  const Origins& origins_;
  std::size_t indent_ = 0;
  bool starts_entry_ = false;
  std::string written_;
};

class TableWriter final : public SettingVisitor {
 public:
  [[nodiscard]] std::string take() { return std::move(written_); }

  void texts(const ParamInfo& info, std::vector<std::string>&) override {
    row(info, "list of texts", info.required ? "at least one" : "", info.required ? "required" : "[]");
  }

  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override {
    row(info, "section", "", "");
    descend(path_of(info), visit);
  }

  void list(const ParamInfo& info, const ListAccess& access) override {
    row(info, "list of sections", info.required ? "at least one" : "", info.required ? "required" : "[]");
    access.resize(1);
    descend(path_of(info) + "[]", [&](ParamVisitor& inner) { access.visit(0, inner); });
  }

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    const bool none = info.secret || setting.value.empty();
    const std::string standard = none ? "none" : "`" + setting.value + "`";
    row(info, to_string(setting.type), setting.range(), info.required ? "required" : standard);
  }

 private:
  void row(const ParamInfo& info, std::string_view type, std::string_view expected, std::string_view standard) {
    written_ += "| `" + path_of(info) + "` |";
    for (const std::string_view cell : {type, expected, standard, info.doc}) {
      written_ += cell.empty() ? " |" : " " + std::string{cell} + " |";
    }
    written_ += "\n";
  }

  std::string written_ = "| setting | type | expected | default | meaning |\n|---|---|---|---|---|\n";
};

}  // namespace

std::string visit_to_yaml(const std::function<void(ParamVisitor&)>& params, const Origins& origins) {
  YamlWriter writer{origins};
  params(writer);
  return writer.take();
}

std::string visit_to_reference(const std::function<void(ParamVisitor&)>& params) {
  TableWriter writer;
  params(writer);
  return writer.take();
}

}  // namespace balanceroute
