#include "proxy/continuation.hpp"

#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>
#include <optional>

#include "proxy/event_edit.hpp"

namespace balanceroute::proxy {

namespace {

constexpr std::int64_t kUsualTextLimit = 16;  // of a text completion that names none

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// As it stands between the quotes of a JSON string.
std::string inside_quotes(std::string_view text) {
  const std::string string = json_string(text);
  return string.substr(1, string.size() - 2);
}

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec != std::errc{} || read.ptr != text.data() + text.size()) return std::nullopt;
  return value;
}

Span within(Span span, std::string_view event, std::string_view json) {
  return {span.offset + static_cast<std::size_t>(json.data() - event.data()), span.length};
}

void correct_usage(Splice& splice, std::string_view event, std::string_view json, const EventPlaces& places,
                   const Continuation& so_far) {
  if (!places.prompt_tokens || !places.completion_tokens) return;
  const Span completion = *places.completion_tokens;
  const auto here = number(json.substr(completion.offset, completion.length));
  if (!here) return;
  const std::int64_t all = so_far.tokens + *here;
  splice.replace(within(*places.prompt_tokens, event, json), std::to_string(so_far.prompt_tokens));
  splice.replace(within(completion, event, json), std::to_string(all));
  if (places.total_tokens) {
    splice.replace(within(*places.total_tokens, event, json), std::to_string(so_far.prompt_tokens + all));
  }
}

}  // namespace

bool can_go_on(const GenerationBody& body, GenerationKind kind) {
  if (body.sequences != 1 || body.place(Member::ContinueFinalMessage) || body.place(Member::AddGenerationPrompt)) {
    return false;
  }
  const auto& prompt = body.place(kind == GenerationKind::ChatCompletion ? Member::Messages : Member::Prompt);
  return prompt && prompt->value.length > 2 && !body.prompt_tokens;
}

void extend_prompt(BodyEdit& edit, const GenerationBody& body, GenerationKind kind, const Continuation& so_far) {
  if (!so_far.begun()) return;
  if (kind == GenerationKind::TextCompletion) {
    const Span prompt = body.place(Member::Prompt)->value;
    edit.insert(prompt.offset + prompt.length - 1, inside_quotes(so_far.text));
    return;
  }
  const Span messages = body.place(Member::Messages)->value;
  edit.insert(messages.offset + messages.length - 1,
              R"(,{"role":"assistant","content":)" + json_string(so_far.text) + "}");
  edit.set(Member::ContinueFinalMessage, "true");
  edit.set(Member::AddGenerationPrompt, "false");
}

void shorten_limits(BodyEdit& edit, const GenerationBody& body, GenerationKind kind, const Continuation& so_far) {
  if (!so_far.begun()) return;
  bool limited = false;
  for (const Member member : {Member::MaxTokens, Member::MaxCompletionTokens, Member::MinTokens}) {
    const auto& place = body.place(member);
    const auto limit = place ? number(edit.text_of(place->value)) : std::nullopt;
    if (!limit) continue;
    const std::int64_t least = member == Member::MinTokens ? 0 : 1;
    edit.set(member, std::to_string(std::max(*limit - so_far.tokens, least)));
    limited = limited || member != Member::MinTokens;
  }
  if (!limited && kind == GenerationKind::TextCompletion) {
    edit.set(Member::MaxTokens, std::to_string(std::max<std::int64_t>(kUsualTextLimit - so_far.tokens, 1)));
  }
}

std::string as_part_of(std::string_view event, std::string_view json, const Continuation& so_far) {
  const EventPlaces places = places_in(json);
  Splice splice{event};
  if (places.id && !so_far.answer_id.empty()) splice.replace(within(*places.id, event, json), so_far.answer_id);
  correct_usage(splice, event, json, places, so_far);
  return splice.apply();
}

std::string as_whole_of(std::string_view json, const Continuation& so_far) {
  const EventPlaces places = places_in(json);
  Splice splice{json};
  if (places.text && places.text->length >= 2) splice.insert(places.text->offset + 1, inside_quotes(so_far.text));
  correct_usage(splice, json, json, places, so_far);
  return splice.apply();
}

std::string without_end(std::string_view event, std::string_view json) {
  const EventPlaces places = places_in(json);
  Splice splice{event};
  if (places.finish_reason) splice.replace(within(*places.finish_reason, event, json), "null");
  if (places.stop_reason) splice.replace(within(*places.stop_reason, event, json), "null");
  return splice.apply();
}

}  // namespace balanceroute::proxy
