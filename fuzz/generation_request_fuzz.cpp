// generation_request_fuzz.cpp - any body is a request whose answer has a length, or a refusal in the engine's shape.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "core/request.hpp"
#include "emulator/answer_length.hpp"
#include "emulator/generation_request.hpp"

namespace {

using namespace balanceroute;
using namespace balanceroute::emulator;

void require(bool holds) {
  if (!holds) std::abort();
}

void check(const GenerationRequest& request) {
  require(!request.prompts.empty() && request.answers_per_prompt >= 1);
  const LengthLaw law{.max_model_len = Tokens{100'000}, .mean_output_tokens = 100};
  Random random{1};
  for (const Prompt& prompt : request.prompts) {
    require(prompt.tokens >= Tokens{1} && prompt.tokens <= kMaxTokens);
    const auto length = choose_length(request, prompt, law, random);
    if (!length) continue;
    require(length->output >= Tokens{1} && prompt.tokens + length->output <= law.max_model_len);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body{reinterpret_cast<const char*>(data), size};
  for (const auto api : {Api::chat, Api::completions}) {
    const auto request = parse_generation_request(api, body);
    if (request) {
      check(*request);
    } else {
      require(!request.error().message.empty() && to_json(request.error()).starts_with("{\"error\":"));
    }
  }
  return 0;
}
