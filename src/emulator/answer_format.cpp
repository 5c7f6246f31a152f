#include "emulator/answer_format.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::emulator {
namespace {

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_usage_object(std::string& out, const Usage& usage) {
  out += R"({"prompt_tokens":)";
  out += std::to_string(usage.prompt.count());
  out += R"(,"total_tokens":)";
  out += std::to_string((usage.prompt + usage.completion).count());
  out += R"(,"completion_tokens":)";
  out += std::to_string(usage.completion.count());
  out += '}';
}

void append_finish(std::string& out, std::string_view finish_reason) {
  if (finish_reason.empty()) {
    out += R"(,"logprobs":null,"finish_reason":null})";
    return;
  }
  out += R"(,"logprobs":null,"finish_reason":")";
  out += finish_reason;
  out += R"(","stop_reason":null})";
}

}  // namespace

void append_token_text(std::string& out, Tokens number) {
  out += " t";
  out += std::to_string(number.count());
}

AnswerFormat::AnswerFormat(Api api, std::string_view id, std::int64_t created, std::string_view model) : api_{api} {
  const bool chat = api == Api::chat;
  const auto quoted_id = json_string((chat ? "chatcmpl-" : "cmpl-") + std::string{id});
  const auto rest =
      R"(","created":)" + std::to_string(created) + R"(,"model":)" + json_string(model) + R"(,"choices":[)";
  const auto head = [&](const std::string& object) {
    return R"({"id":)" + quoted_id + R"(,"object":")" + object + rest;
  };
  event_head_ = "data: " + head(chat ? "chat.completion.chunk" : "text_completion");
  whole_head_ = head(chat ? "chat.completion" : "text_completion");
}

void AnswerFormat::append_role(std::string& out, std::size_t choice, const Usage* usage) const {
  if (api_ == Api::completions) return;
  begin_event(out, choice);
  out += R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})";
  end_event(out, usage);
}

void AnswerFormat::append_token(std::string& out, std::size_t choice, Tokens number, std::string_view finish_reason,
                                const Usage* usage) const {
  begin_event(out, choice);
  out += api_ == Api::chat ? R"("delta":{"content":")" : R"("text":")";
  append_token_text(out, number);
  out += api_ == Api::chat ? R"("})" : R"(")";
  append_finish(out, finish_reason);
  end_event(out, usage);
}

void AnswerFormat::append_usage(std::string& out, const Usage& usage) const {
  out += event_head_;
  end_event(out, &usage);
}

void AnswerFormat::append_done(std::string& out) {
  out += "data: [DONE]\n\n";
}

std::string AnswerFormat::whole(std::span<const FinishedChoice> choices, const Usage& usage) const {
  std::string out = whole_head_;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    out += i == 0 ? R"({"index":)" : R"(,{"index":)";
    out += std::to_string(i);
    out += api_ == Api::chat ? R"(,"message":{"role":"assistant","content":)" : R"(,"text":)";
    out += json_string(choices[i].text);
    if (api_ == Api::chat) out += '}';
    append_finish(out, choices[i].finish_reason);
  }
  out += R"(],"usage":)";
  append_usage_object(out, usage);
  return out + '}';
}

void AnswerFormat::begin_event(std::string& out, std::size_t choice) const {
  out += event_head_;
  out += R"({"index":)";
  out += std::to_string(choice);
  out += ',';
}

void AnswerFormat::end_event(std::string& out, const Usage* usage) {
  out += ']';
  if (usage != nullptr) {
    out += R"(,"usage":)";
    append_usage_object(out, *usage);
  }
  out += "}\n\n";
}

}  // namespace balanceroute::emulator
