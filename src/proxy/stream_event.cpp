#include "proxy/stream_event.hpp"

#include <simdjson.h>

namespace balanceroute::proxy {

namespace {

namespace dom = simdjson::dom;

bool has_text(const dom::object& object, std::string_view key) {
  std::string_view text;
  return !object[key].get_string().get(text) && !text.empty();
}

// What a choice brings: in events of a chat a delta, in whole answers a message.
void read_content(const dom::object& choice, StreamEvent& event) {
  std::string_view text;
  event.text = choice["text"].get_string().get(text) ? std::string_view{} : text;
  dom::object part;
  if (choice["delta"].get_object().get(part) && choice["message"].get_object().get(part)) return;
  if (!part["content"].get_string().get(text)) event.text = text;
  dom::array calls;
  event.other_content = has_text(part, "reasoning") || has_text(part, "reasoning_content") ||
                        (!part["tool_calls"].get_array().get(calls) && calls.size() > 0);
  event.opens = event.text.empty() && !event.other_content && has_text(part, "role");
}

std::int32_t tokens_of(const dom::object& choice, const StreamEvent& event) {
  dom::array ids;
  if (!choice["token_ids"].get_array().get(ids)) return static_cast<std::int32_t>(ids.size());
  return event.text.empty() && !event.other_content ? 0 : 1;
}

// Responses and messages count input and output, the other APIs prompt and completion.
std::optional<Usage> usage_of(const dom::object& object) {
  dom::object usage;
  if (object["usage"].get_object().get(usage)) return std::nullopt;
  Usage out;
  const bool known = !usage["prompt_tokens"].get_int64().get(out.prompt_tokens) ||
                     !usage["input_tokens"].get_int64().get(out.prompt_tokens);
  const bool counted = !usage["completion_tokens"].get_int64().get(out.completion_tokens) ||
                       !usage["output_tokens"].get_int64().get(out.completion_tokens);
  std::int64_t cached = 0;
  if (!usage["prompt_tokens_details"]["cached_tokens"].get_int64().get(cached)) out.cached_tokens = cached;
  return known || counted ? std::optional{out} : std::nullopt;
}

// Newer engines nest the error, older ones and SGLang send it flat (engine-protocols 4.6).
bool read_error(const dom::object& object, StreamEvent& event) {
  dom::element error;
  std::string_view kind;
  const bool nested = !object["error"].get(error) && !error.is_null();
  const bool flat = !object["object"].get_string().get(kind) && kind == "error";
  if (!nested && !flat) return false;
  std::string_view message;
  if (nested ? !error["message"].get_string().get(message) : !object["message"].get_string().get(message)) {
    event.error_message = message;
  }
  std::int64_t status = 0;
  const bool says_status = nested ? !error["code"].get_int64().get(status) : !object["code"].get_int64().get(status);
  event.refusal = says_status && status >= 400 && status < 500;
  return true;
}

void read_choices(const dom::array& choices, StreamEvent& event) {
  for (const dom::element element : choices) {
    dom::object choice;
    if (element.get_object().get(choice)) continue;
    read_content(choice, event);
    event.tokens += tokens_of(choice, event);
    dom::element reason;
    if (!choice["finish_reason"].get(reason) && !reason.is_null()) {
      if (reason.get_string().get(event.finish_reason)) event.finish_reason = {};
      ++event.finished;
      event.opens = false;
    }
    std::string_view stop;
    if (!choice["stop_reason"].get_string().get(stop) && stop == "recomputed") event.recomputed = true;
  }
}

// Events of OpenAI's Responses API and of Anthropic's Messages API, which name their type.
void read_typed_event(const dom::object& object, std::string_view type, StreamEvent& event) {
  if (type == "content_block_delta" || (type.starts_with("response.") && type.ends_with(".delta"))) {
    std::string_view kind;
    const bool signature = !object["delta"]["type"].get_string().get(kind) && kind == "signature_delta";
    event.tokens = signature ? 0 : 1;
    return;
  }
  const bool completed = type == "response.completed" || type == "response.incomplete";
  event.done = completed || type == "message_stop";
  event.finished = completed || type == "message_delta" ? 1 : 0;
  dom::object whole;
  const bool has_whole = !object["response"].get_object().get(whole) || !object["message"].get_object().get(whole);
  if (has_whole && (completed || type == "message_start")) event.usage = usage_of(whole);
  const bool failed = type == "response.failed" && has_whole;
  if (!failed && type != "error") return;
  event.error = true;
  std::string_view message;
  const bool told =
      failed ? !whole["error"]["message"].get_string().get(message) : !object["message"].get_string().get(message);
  if (told) event.error_message = message;
}

// The parser keeps the tree until its next use, so one a thread serves every event.
bool parse(std::string_view text, dom::object& object) {
  thread_local dom::parser parser;
  dom::element root;
  return !parser.parse(text.data(), text.size()).get(root) && !root.get_object().get(object);
}

}  // namespace

StreamEvent read_stream_event(std::string_view data) {
  StreamEvent event;
  if (data.empty()) return event;
  if (data == "[DONE]") {
    event.done = true;
    return event;
  }
  dom::object object;
  if (!parse(data, object)) {
    event.readable = false;
    return event;
  }
  event.error = read_error(object, event);
  event.usage = usage_of(object);
  dom::array choices;
  if (!object["choices"].get_array().get(choices)) {
    read_choices(choices, event);
    event.usage_only = event.usage.has_value() && choices.size() == 0;
    return event;
  }
  std::string_view type;
  if (!object["type"].get_string().get(type)) read_typed_event(object, type, event);
  return event;
}

StreamEvent read_whole_answer(std::string_view body) {
  StreamEvent event;
  dom::object object;
  if (!parse(body, object)) {
    event.readable = false;
    return event;
  }
  event.usage = usage_of(object);
  dom::array choices;
  if (!object["choices"].get_array().get(choices)) read_choices(choices, event);
  return event;
}

}  // namespace balanceroute::proxy
