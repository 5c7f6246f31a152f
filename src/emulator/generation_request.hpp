// generation_request.hpp - what an OpenAI request for text asks of an engine.
//
// Only the members that decide how much is read and generated are looked at; sampling parameters, tools and the rest
// are accepted and ignored. One member is the emulator's own, which no router reads:
//
//   "emulator": {"prompt_tokens": 1200, "output_tokens": 80, "age": 25}
//
// It says the lengths of every prompt and answer of the request; with an age the answer begins in its middle: `age`
// tokens count as generated before and only the remaining ones are sent.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace balanceroute::emulator {

enum class Api { chat, completions };

// An error answer in vLLM's shape.
struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message;
  std::string param;  // the member at fault, may be empty
};

[[nodiscard]] std::string to_json(const ApiError& error);

// GenerationRequest is one request for `prompts.size() * answers_per_prompt` sequences.
struct GenerationRequest {
  Api api = Api::chat;
  std::string model;            // empty: whatever is served
  std::vector<Tokens> prompts;  // lengths
  std::int64_t answers_per_prompt = 1;
  std::optional<Tokens> limit;   // max_completion_tokens or max_tokens
  std::optional<Tokens> output;  // emulator.output_tokens
  Tokens age{0};
  bool stream = false;
  bool include_usage = false;
  bool continuous_usage = false;
};

// A prompt of token ids has their number; of text, a token for each 4 bytes begun, at least 1.
[[nodiscard]] std::expected<GenerationRequest, ApiError> parse_generation_request(Api api, std::string_view body);

}  // namespace balanceroute::emulator
