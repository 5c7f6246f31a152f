// nearest.hpp - what a mistyped name was meant to be.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace balanceroute {

// Insertions, deletions, replacements and swaps of neighbours that turn one text into the other.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

// "did you mean listen?" if one of `known` is near enough to be a slip, else "expected one of listen, admin".
[[nodiscard]] std::string suggestion(std::string_view unknown, std::span<const std::string> known);

}  // namespace balanceroute
