// request_text.hpp - the body of a text completion request with a prompt of a given number of tokens.
//
// Prompts are token ids, so that their length is exact for every server. The ids are drawn from a seed: prompts of
// different requests share no prefix, but where the trace says that they do, they do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace balanceroute::replay {

enum class LengthMember { max_tokens, emulator };

struct RequestText {
  std::string_view model;
  Tokens prompt;
  Tokens output;
  std::span<const std::int64_t> prefix_blocks;  // of 512 tokens each
  bool stream = true;
  LengthMember length_member = LengthMember::max_tokens;
  std::uint64_t seed = 0;  // of the prompt's tokens behind the shared blocks
};

[[nodiscard]] std::string request_body(const RequestText& request);

}  // namespace balanceroute::replay
