// yaml_tree.hpp - the part of YAML that a configuration needs, as a tree that knows its lines.
//
// One document of maps, lists and scalars. Anchors, aliases, tags, keys that are not texts and further documents are
// refused, and so is what is larger or deeper than any configuration: reading takes time and memory in proportion to
// the text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute {

// YamlNode is a value: nothing, a scalar, a list or a map.
struct YamlNode {
  enum class Kind : std::uint8_t { null, scalar, list, map };
  struct Member;

  Kind kind = Kind::null;
  std::size_t line = 1;  // where it starts, from 1
  std::string text;      // of a scalar, without quotes
  bool quoted = false;
  std::vector<YamlNode> items;  // of a list
  std::vector<Member> members;  // of a map, as they come; the same key may come twice
};

struct YamlNode::Member {
  std::string key;
  std::size_t line = 1;
  YamlNode value;
};

inline constexpr std::size_t kLargestYaml = 1024 * 1024;  // bytes
inline constexpr std::size_t kDeepestYaml = 32;           // lists and maps in one another

struct YamlFault {
  std::size_t line;  // 0 for the whole
  std::string what;
};

// The text's only document; a `null` if it has none.
[[nodiscard]] std::expected<YamlNode, YamlFault> parse_yaml(std::string_view text, std::size_t largest = kLargestYaml);

}  // namespace balanceroute
