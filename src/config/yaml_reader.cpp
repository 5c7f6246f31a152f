#include "config/yaml_reader.hpp"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <map>
#include <system_error>
#include <vector>

#include "config/nearest.hpp"
#include "config/setting_visitor.hpp"
#include "config/text_form.hpp"
#include "config/yaml_tree.hpp"

namespace balanceroute {
namespace {

using Kind = YamlNode::Kind;

// A file of another kind would be all problems; the first tell that.
constexpr std::size_t kMostProblems = 20;

std::string shown_scalar(const YamlNode& node) {
  const std::string text = shown(node.text);
  return node.quoted && !text.starts_with('"') ? '"' + text + '"' : text;
}

std::string shown_node(const YamlNode& node) {
  switch (node.kind) {
    case Kind::null:
      return "nothing";
    case Kind::scalar:
      return shown_scalar(node);
    case Kind::list:
      return node.items.empty() ? "[]" : "[...]";
    case Kind::map:
      return node.members.empty() ? "{}" : "{...}";
  }
  std::unreachable();
}

// YamlReader visits settings and the tree side by side.
class YamlReader final : public SettingVisitor {
 public:
  YamlReader(std::string_view source_name, const YamlNode& root, const GivenSettings& elsewhere)
      : source_{source_name}, map_{&root}, line_{root.line}, elsewhere_{elsewhere} {}

  // Ends the visit.
  [[nodiscard]] std::expected<Origins, ConfigError> finish() {
    check_keys("");
    if (problems_.empty()) return std::move(origins_);
    ConfigError error;
    for (const auto& [line, what] : problems_) error.problems.push_back(at(line) + ": " + what);
    if (untold_ > 0) error.problems.push_back(source_ + ": and " + std::to_string(untold_) + " problems more");
    return std::unexpected(std::move(error));
  }

  void texts(const ParamInfo& info, std::vector<std::string>& values) override {
    const YamlNode* node = find(info);
    const std::string_view expected = info.required ? "at least one text" : "a list of texts";
    if (!node) return check_missing(info, expected);
    if (node->kind != Kind::list || (info.required && node->items.empty())) return blame(info, *node, expected);
    values.clear();
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const YamlNode& item = node->items[i];
      if (item.kind == Kind::scalar) {
        values.push_back(item.text);
      } else {
        blame(path_of(info) + "[" + std::to_string(i) + "]", item, "a text");
      }
    }
  }

  void section(const ParamInfo& info, const std::function<void(ParamVisitor&)>& visit) override {
    const YamlNode* node = find(info);
    if (node && node->kind != Kind::map && node->kind != Kind::null) return blame(info, *node, "a section of settings");
    if (!node && info.required && !gives_any(path_of(info))) return check_missing(info, "a section of settings");
    // A section with nothing below its name, for example because all is commented out, is one of defaults.
    const bool empty = !node || node->kind == Kind::null;
    enter(path_of(info), empty ? nullptr : node, node ? node->line : line_, visit);
  }

  void list(const ParamInfo& info, const ListAccess& access) override {
    const YamlNode* node = find(info);
    const std::string_view expected = info.required ? "at least one entry" : "a list";
    if (!node) return check_missing(info, expected);
    if (node->kind != Kind::list || (info.required && node->items.empty())) return blame(info, *node, expected);
    access.resize(0);
    access.resize(node->items.size());
    for (std::size_t i = 0; i < node->items.size(); ++i) {
      const YamlNode& item = node->items[i];
      const std::string path = path_of(info) + "[" + std::to_string(i) + "]";
      if (item.kind != Kind::map) {
        blame(path, item, "a section of settings");
        continue;
      }
      origins_[path] = at(item.line);
      enter(path, &item, item.line, [&](ParamVisitor& inner) { access.visit(i, inner); });
    }
  }

 protected:
  void scalar(const ParamInfo& info, const ScalarSetting& setting) override {
    const YamlNode* node = find(info);
    if (!node) return check_missing(info, setting.expected);
    if (setting.type == ScalarSetting::Type::list && node->kind == Kind::list) {
      if (!assign_items(*node, setting)) blame(info, *node, setting.expected);
      return;
    }
    // JSON knows `auto` only with quotes; a number in quotes is a text.
    const bool text = node->quoted && node->text != "auto";
    const bool fits = node->kind == Kind::scalar && (setting.is_text() || !text);
    if (!fits || !setting.assign(node->text)) blame(info, *node, setting.expected);
  }

 private:
  // A list of plain values, written as one; as a text with commas it may be written, too.
  static bool assign_items(const YamlNode& list, const ScalarSetting& setting) {
    std::string all;
    for (const YamlNode& item : list.items) {
      if (item.kind != Kind::scalar || item.text.contains(',')) return false;
      all += (all.empty() ? "" : ",") + item.text;
    }
    return setting.assign(all);
  }

  [[nodiscard]] std::string at(std::size_t line) const {
    return line == 0 ? source_ : source_ + ":" + std::to_string(line);
  }

  // The value of a setting, where it was set; nullptr if it was not.
  const YamlNode* find(const ParamInfo& info) {
    known_.emplace_back(info.name);
    if (!map_) return nullptr;
    const auto member = std::ranges::find(map_->members, info.name, &YamlNode::Member::key);
    if (member == map_->members.end()) return nullptr;
    origins_[path_of(info)] = at(member->line);
    value_line_ = member->line;
    return &member->value;
  }

  [[nodiscard]] bool is_full() const { return problems_.size() == kMostProblems; }

  void add_problem(std::size_t line, std::string what) {
    if (is_full()) {
      ++untold_;
    } else {
      problems_.emplace(line, std::move(what));
    }
  }

  void blame(const ParamInfo& info, const YamlNode& node, std::string_view expected) {
    const std::string value = info.secret ? "(hidden)" : shown_node(node);
    add_problem(value_line_, path_of(info) + " = " + value + ": expected " + std::string{expected});
  }

  void blame(const std::string& path, const YamlNode& node, std::string_view expected) {
    add_problem(node.line, path + " = " + shown_node(node) + ": expected " + std::string{expected});
  }

  void check_missing(const ParamInfo& info, std::string_view expected) {
    const bool wanted = info.required && !skips_missing_ && !elsewhere_.contains(path_of(info));
    if (wanted) add_problem(line_, path_of(info) + ": missing, expected " + std::string{expected});
  }

  [[nodiscard]] bool gives_any(const std::string& section) const {
    const auto first = elsewhere_.lower_bound(section + ".");
    return first != elsewhere_.end() && first->first.starts_with(section + ".");
  }

  // Visits what stands at `path` with its own map; without one, its settings keep their defaults.
  void enter(const std::string& path, const YamlNode* map, std::size_t line,
             const std::function<void(ParamVisitor&)>& visit) {
    const YamlNode* outer_map = std::exchange(map_, map);
    const std::size_t outer_line = std::exchange(line_, line);
    const bool outer_skips = std::exchange(skips_missing_, !map && !gives_any(path));
    std::vector<std::string> outer_known = std::exchange(known_, {});
    descend(path, visit);
    check_keys(path + ".");
    map_ = outer_map;
    line_ = outer_line;
    skips_missing_ = outer_skips;
    known_ = std::move(outer_known);
  }

  // Every key of the present map is a setting, and comes once.
  void check_keys(const std::string& prefix) {
    if (!map_) return;
    std::map<std::string_view, std::size_t> first_lines;
    for (const YamlNode::Member& member : map_->members) {
      const std::string path = prefix + shown(member.key);
      const auto [first, fresh] = first_lines.emplace(member.key, member.line);
      if (!fresh) {
        add_problem(member.line, path + ": given twice, first in line " + std::to_string(first->second));
      } else if (std::ranges::find(known_, member.key) == known_.end()) {
        add_problem(member.line, path + ": unknown key; " + (is_full() ? "" : suggestion(member.key, known_)));
      }
    }
  }

  std::string source_;
  const YamlNode* map_;  // what is visited now; nullptr if the file does not have it
  std::size_t line_;     // where it is, or what it should be a part of
  bool skips_missing_ = false;
  std::vector<std::string> known_;  // its settings so far
  std::size_t value_line_ = 0;      // of the key found last
  const GivenSettings& elsewhere_;
  Origins origins_;
  std::multimap<std::size_t, std::string> problems_;  // by line
  std::size_t untold_ = 0;
};

ConfigError one_problem(std::string_view source, std::size_t line, const std::string& what) {
  const std::string place = std::string{source} + (line == 0 ? "" : ":" + std::to_string(line));
  return {{place + ": " + what}};
}

std::expected<Origins, ConfigError> visit_tree(std::string_view source_name, const YamlNode& root,
                                               const std::function<void(ParamVisitor&)>& params,
                                               const GivenSettings& elsewhere) {
  YamlReader reader{source_name, root, elsewhere};
  params(reader);
  return reader.finish();
}

}  // namespace

std::expected<Origins, ConfigError> visit_yaml(std::string_view text, std::string_view source_name,
                                               const std::function<void(ParamVisitor&)>& params,
                                               const GivenSettings& elsewhere, std::size_t largest) {
  const auto root = parse_yaml(text, largest);
  if (!root) return std::unexpected(one_problem(source_name, root.error().line, root.error().what));
  if (root->kind == Kind::null) return std::unexpected(one_problem(source_name, 0, "empty: expected settings"));
  if (root->kind != Kind::map) {
    return std::unexpected(
        one_problem(source_name, root->line, shown_node(*root) + ": expected settings, as `name: value`"));
  }
  return visit_tree(source_name, *root, params, elsewhere);
}

std::expected<Origins, ConfigError> visit_no_yaml(const std::function<void(ParamVisitor&)>& params,
                                                  const GivenSettings& elsewhere) {
  const YamlNode nothing{.kind = Kind::map, .line = 0};
  return visit_tree("no configuration file", nothing, params, elsewhere);
}

std::expected<std::string, ConfigError> read_config_file(const std::filesystem::path& path, std::size_t largest) {
  const auto problem = [&path](const std::string& what) {
    return std::unexpected(one_problem(path.string(), 0, what));
  };
  std::error_code unknown;
  if (std::filesystem::is_directory(path, unknown)) return problem("a directory: expected a file");
  errno = 0;
  std::ifstream file{path, std::ios::binary};
  if (!file) return problem(std::generic_category().message(errno));
  // One byte more than is allowed shows that there is too much, also of a pipe that never ends.
  std::string text(largest + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) return problem("cannot be read");
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > largest) return problem("more than " + std::to_string(largest) + " bytes");
  return text;
}

}  // namespace balanceroute
