// generation_request.hpp - what a request for text asks of an engine, in any API that it serves.
//
// Only the members that decide how much is read and generated, the shape of the answer and the transfer of KV are
// looked at; sampling parameters and the rest are accepted and ignored. One member is the emulator's own, which no
// router reads:
//
//   "emulator": {"prompt_tokens": 1200, "output_tokens": 80, "age": 25, "reasoning_tokens": 10, "cached_tokens": 500}
//
// It says the lengths of every prompt and answer of the request; with an age the answer begins in its middle: `age`
// tokens count as generated before and only the remaining ones are sent. The first reasoning_tokens are reasoning. Of
// each prompt cached_tokens are in the prefix cache: a rank that prefills by itself does not compute them, and usage
// tells.
//
// A prompt that ends in numbered tokens of the emulator (" t17", or their ids), in a chat only with
// continue_final_message, is the beginning of an answer that goes on from there.
#pragma once

#include <algorithm>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/units.hpp"

namespace balanceroute::emulator {

enum class Api { chat, completions, responses, messages };

// An error answer in vLLM's shape.
struct ApiError {
  int status = 400;
  std::string type = "BadRequestError";
  std::string message;
  std::string param;  // the member at fault, may be empty
};

[[nodiscard]] std::string to_json(const ApiError& error);
[[nodiscard]] ApiError unknown_model(std::string_view model);

inline constexpr std::size_t kBytesPerToken = 4;
// A token for each 4 bytes begun, at least 1.
[[nodiscard]] Tokens tokens_of_text(std::size_t bytes);

// The ids of numbered tokens begin above those of any vocabulary in use.
inline constexpr std::int64_t kFirstTokenId = 1'000'000;

struct Prompt {
  Tokens tokens;
  Tokens answered{0};             // numbered tokens of the answer that it ends with
  std::vector<std::int64_t> ids;  // when the request is of token ids and wants ids back

  friend bool operator==(const Prompt&, const Prompt&) = default;
};

// The members by which a router tells engines where KV is; as the client of the emulator wrote them.
struct TransferMembers {
  std::optional<std::string> kv_transfer_params;        // the bytes of the object
  std::optional<std::string> batch_kv_transfer_params;  // the bytes of the object
  std::vector<std::string> bootstrap_hosts;             // one for each prompt, as the two below
  std::vector<std::optional<std::int64_t>> bootstrap_ports;
  std::vector<std::int64_t> bootstrap_rooms;
  std::optional<std::int64_t> routed_dp_rank;  // or by its older name data_parallel_rank
  std::optional<std::int64_t> disagg_prefill_dp_rank;
};

// GenerationRequest is one request for `prompts.size() * answers_per_prompt` sequences.
struct GenerationRequest {
  Api api = Api::chat;
  std::string model;  // empty: whatever is served
  std::vector<Prompt> prompts;
  std::int64_t answers_per_prompt = 1;
  std::optional<Tokens> limit;   // max_completion_tokens, max_tokens or max_output_tokens
  std::optional<Tokens> output;  // emulator.output_tokens
  std::optional<std::int64_t> min_tokens;
  Tokens age{0};
  Tokens reasoning{0};           // tokens of it that an answer begins with
  std::optional<Tokens> cached;  // of each prompt
  bool stream = false;
  bool stream_options = false;  // there are some
  bool include_usage = false;
  bool continuous_usage = false;
  bool return_token_ids = false;
  bool logprobs = false;
  std::string tool;         // the function that the answer calls, when the request forces a call
  bool tool_named = false;  // by its name
  TransferMembers transfer;

  // The last token of a prompt is always computed.
  [[nodiscard]] Tokens cached_of(Tokens prompt) const {
    return std::min(cached.value_or(Tokens{0}), prompt - Tokens{1});
  }
  [[nodiscard]] const Prompt& prompt_of(std::size_t choice) const {
    return prompts[choice / static_cast<std::size_t>(answers_per_prompt)];
  }
};

// A prompt of token ids has their number; of text, a token for each 4 bytes begun, at least 1.
[[nodiscard]] std::expected<GenerationRequest, ApiError> parse_generation_request(Api api, std::string_view body);

}  // namespace balanceroute::emulator
