// answer_length.hpp - how long an answer will be, and why it ends there.
#pragma once

#include <expected>
#include <string_view>

#include "core/random.hpp"
#include "core/units.hpp"
#include "emulator/generation_request.hpp"

namespace balanceroute::emulator {

struct LengthLaw {
  Tokens max_model_len;       // of prompt and answer together
  double mean_output_tokens;  // of answers whose length nobody states
};

struct AnswerLength {
  Tokens output;  // age included
  std::string_view finish_reason;
};

// The length that the request states; else its limit; else, for chat, a draw from an exponential law. A limit below
// that, or the end of the context, cuts the answer ("length"); an answer that ends by itself says "stop", and does so
// with a token of its own, the first after min_tokens at the earliest. Text completions without a limit have 16 tokens,
// as in vLLM. What the prompt has of the answer counts towards the stated length and not towards the limit. An error
// when prompt and answer do not fit the context.
[[nodiscard]] std::expected<AnswerLength, ApiError> choose_length(const GenerationRequest& request,
                                                                  const Prompt& prompt, const LengthLaw& law,
                                                                  Random& random);

}  // namespace balanceroute::emulator
