#include "config/yaml_tree.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/mark.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "config/text_form.hpp"

namespace balanceroute {
namespace {

std::size_t line_of(const YAML::Mark& mark) {
  return mark.is_null() ? 0 : static_cast<std::size_t>(mark.line) + 1;
}

// Thrown through the YAML parser, which knows no other way to stop.
struct Refusal {
  YamlFault fault;
};

[[noreturn]] void refuse(const YAML::Mark& mark, std::string what) {
  throw Refusal{{line_of(mark), std::move(what)}};
}

// TreeBuilder makes the tree from the parser's events.
class TreeBuilder final : public YAML::EventHandler {
 public:
  [[nodiscard]] YamlNode take() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark&) override {}
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (expects_key()) refuse(mark, "a key is missing");
    add({.kind = YamlNode::Kind::null, .line = line_of(mark)});
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    refuse(mark, "aliases (*name) are not supported: write the value again");
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (expects_key()) {
      open_.back().key = Key{value, line_of(mark)};
    } else {
      add({.kind = YamlNode::Kind::scalar, .line = line_of(mark), .text = value, .quoted = tag == "!"});
    }
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::list, mark, tag, anchor);
  }
  void OnSequenceEnd() override { close(); }

  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(YamlNode::Kind::map, mark, tag, anchor);
  }
  void OnMapEnd() override { close(); }

 private:
  struct Key {
    std::string text;
    std::size_t line;
  };
  struct Open {
    YamlNode node;
    std::optional<Key> key;  // of the member whose value comes next
  };

  static void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) {
    if (anchor != YAML::NullAnchor) refuse(mark, "anchors (&name) are not supported: write the value again");
  }

  // "?" and "!" stand for no tag, of a plain and of a quoted value.
  static void refuse_tag(const YAML::Mark& mark, const std::string& tag) {
    if (!tag.empty() && tag != "?" && tag != "!") refuse(mark, "tags (!name) are not supported");
  }

  [[nodiscard]] bool expects_key() const {
    return !open_.empty() && open_.back().node.kind == YamlNode::Kind::map && !open_.back().key;
  }

  void open(YamlNode::Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (expects_key()) refuse(mark, "a key is a list or a map: expected a name");
    if (open_.size() == kDeepestYaml) {
      refuse(mark, "more than " + std::to_string(kDeepestYaml) + " lists and maps in one another");
    }
    open_.push_back({.node = {.kind = kind, .line = line_of(mark)}, .key = std::nullopt});
  }

  void close() {
    YamlNode node = std::move(open_.back().node);
    open_.pop_back();
    add(std::move(node));
  }

  void add(YamlNode node) {
    if (open_.empty()) {
      root_ = std::move(node);
    } else if (Open& parent = open_.back(); parent.node.kind == YamlNode::Kind::list) {
      parent.node.items.push_back(std::move(node));
    } else {
      Key key = *std::exchange(parent.key, std::nullopt);
      parent.node.members.push_back({std::move(key.text), key.line, std::move(node)});
    }
  }

  YamlNode root_;
  std::vector<Open> open_;
};

// What the parser would misread: it takes some control characters for the end, and repairs broken UTF-8.
std::optional<YamlFault> unreadable(std::string_view text, std::size_t largest) {
  if (text.size() > largest) {
    return YamlFault{0, std::to_string(text.size()) + " bytes: expected at most " + std::to_string(largest)};
  }
  const auto line_at = [text](std::size_t place) {
    return 1 + static_cast<std::size_t>(std::ranges::count(text.substr(0, place), '\n'));
  };
  const auto is_stray = [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  };
  if (const auto stray = std::ranges::find_if(text, is_stray); stray != text.end()) {
    return YamlFault{line_at(static_cast<std::size_t>(stray - text.begin())), "a control character: expected text"};
  }
  if (const std::size_t valid = utf8_prefix(text); valid < text.size()) {
    return YamlFault{line_at(valid), "not UTF-8"};
  }
  return std::nullopt;
}

}  // namespace

std::expected<YamlNode, YamlFault> parse_yaml(std::string_view text, std::size_t largest) {
  if (auto fault = unreadable(text, largest)) return std::unexpected(*std::move(fault));
  std::istringstream stream{std::string{text}};
  TreeBuilder builder;
  try {
    YAML::Parser parser{stream};
    parser.HandleNextDocument(builder);
    YamlNode root = builder.take();
    if (parser.HandleNextDocument(builder)) {
      return std::unexpected(YamlFault{0, "several YAML documents: expected one"});
    }
    return root;
  } catch (const Refusal& refusal) {
    return std::unexpected(refusal.fault);
  } catch (const YAML::Exception& fault) {
    return std::unexpected(YamlFault{line_of(fault.mark), "not YAML: " + fault.msg});
  }
}

}  // namespace balanceroute
