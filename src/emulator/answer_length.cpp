#include "emulator/answer_length.hpp"

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>

namespace balanceroute::emulator {
namespace {

constexpr Tokens kCompletionsLimit{16};

std::unexpected<ApiError> too_long(Tokens prompt, Tokens output, Tokens context) {
  return std::unexpected{ApiError{.message = "This model's maximum context length is " +
                                             std::to_string(context.count()) + " tokens. However, you requested " +
                                             std::to_string((prompt + output).count()) + " tokens (" +
                                             std::to_string(prompt.count()) + " in the prompt, " +
                                             std::to_string(output.count()) + " in the completion)."}};
}

// What the answer would be if nothing cut it; nothing when only the limit says something.
std::optional<Tokens> wish(const GenerationRequest& request, const Prompt& prompt, bool limited, const LengthLaw& law,
                           Random& random) {
  if (request.output) return std::max(*request.output - prompt.answered, request.age + Tokens{1});
  if (limited) return std::nullopt;
  // Far below the range of int64: the mean is at most 1e6, and the largest draw 37 times that.
  return Tokens{1 + static_cast<std::int64_t>(std::floor(random.exponential(law.mean_output_tokens)))};
}

}  // namespace

std::expected<AnswerLength, ApiError> choose_length(const GenerationRequest& request, const Prompt& prompt,
                                                    const LengthLaw& law, Random& random) {
  const Tokens room = law.max_model_len - prompt.tokens;
  std::optional<Tokens> limit = request.limit;
  if (!limit && !request.output && request.api == Api::completions) limit = kCompletionsLimit;
  const auto wished = wish(request, prompt, limit.has_value(), law, random);
  const auto least = std::max(request.output ? *wished : Tokens{1}, request.limit.value_or(Tokens{1}));
  if (least > room) return too_long(prompt.tokens, least, law.max_model_len);
  const Tokens longest = std::min(limit.value_or(room), room);
  const Tokens earliest_end = request.age + Tokens{request.min_tokens.value_or(0) + 1};
  if (wished && std::max(*wished, earliest_end) <= longest) {
    return AnswerLength{std::max(*wished, earliest_end), "stop"};
  }
  return AnswerLength{longest, "length"};
}

}  // namespace balanceroute::emulator
