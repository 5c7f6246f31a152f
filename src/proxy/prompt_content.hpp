// prompt_content.hpp - how much of what a prompt holds, told before an engine counts its tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace balanceroute::proxy {

// What of a request's body becomes tokens. Text is by who says it, as roles differ in what they say.
enum class PromptPart : std::uint8_t {
  Plain,  // of a text completion
  System,
  User,
  Assistant,
  Tool,   // what tools said
  Tools,  // what tools there are
  Media   // images, sounds, files: their number, for their bytes say nothing about their tokens
};
inline constexpr std::size_t kPromptParts = 7;

// PromptContent counts the bytes of each part as JSON, and the pieces of media.
struct PromptContent {
  std::array<std::size_t, kPromptParts> amounts{};

  void add(PromptPart part, std::size_t amount) { amounts[static_cast<std::size_t>(part)] += amount; }
  [[nodiscard]] std::size_t of(PromptPart part) const { return amounts[static_cast<std::size_t>(part)]; }
};

}  // namespace balanceroute::proxy
