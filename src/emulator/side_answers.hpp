// side_answers.hpp - what a server answers beside generation, at once and without a slot: embeddings, scores, ranks,
// classes, tokens of a text and the text of tokens.
//
// Numbers are made up from the text, the same for the same text. A token is 4 bytes, and its id holds them, so that
// /detokenize gives back what /tokenize took.
#pragma once

#include <expected>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "emulator/generation_request.hpp"

namespace balanceroute::emulator {

struct SideContext {
  std::string model;
  std::string id;  // the request's
  std::int64_t created = 0;
  Tokens max_model_len;
};

[[nodiscard]] bool is_side_path(std::string_view path);

// The body of the answer to a POST on a side path.
[[nodiscard]] std::expected<std::string, ApiError> side_answer(std::string_view path, std::string_view body,
                                                               const SideContext& context);

}  // namespace balanceroute::emulator
