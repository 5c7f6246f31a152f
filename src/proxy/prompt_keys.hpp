// prompt_keys.hpp - numbers by which equal prompts are known again, made of a request's body.
#pragma once

#include <cstdint>
#include <string_view>

#include "history/keyed_hash.hpp"
#include "proxy/request_body.hpp"

namespace balanceroute::proxy {

// 0: not known.
struct PromptKeys {
  std::uint64_t prompt = 0;
  std::uint64_t opening = 0;  // of what comes before anything a user says: tools, system messages
};

// Of what `model` is asked: the text of the prompt's members as the client wrote it. Spelling, order and spaces count;
// members that say how to answer do not.
[[nodiscard]] PromptKeys prompt_keys(const history::KeyedHash& hash, std::string_view model, const GenerationBody& body,
                                     std::string_view text);

}  // namespace balanceroute::proxy
