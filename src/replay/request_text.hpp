// request_text.hpp - the body of a request with a prompt of a given number of tokens.
//
// Text completions get token ids, so that their length is exact for every server. Chats get text, a word for a token:
// common English words of three letters and a space, four bytes, which is one token for the usual tokenizers and an
// estimate for others (a chat template adds a few). Ids and words are drawn from a seed: prompts of different requests
// share no prefix, but where the trace says that they do, they do.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace balanceroute::replay {

enum class Route { completions, chat };
// limit: max_tokens. exact: max_tokens, and no end before it (ignore_eos, which vLLM and SGLang know). emulator: the
// member that only the emulator reads.
enum class LengthMember { limit, exact, emulator };

struct RequestText {
  Route route = Route::completions;
  std::string_view model;
  Tokens prompt;
  Tokens output;
  std::span<const std::int64_t> prefix_blocks;  // of 512 tokens each
  bool stream = true;
  LengthMember length_member = LengthMember::exact;
  std::uint64_t seed = 0;  // of the prompt's tokens behind the shared blocks
};

[[nodiscard]] std::string_view path_of(Route route);
[[nodiscard]] std::string request_body(const RequestText& request);

}  // namespace balanceroute::replay
