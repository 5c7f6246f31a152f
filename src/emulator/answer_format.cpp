#include "emulator/answer_format.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "emulator/answer_text.hpp"
#include "emulator/messages_writer.hpp"
#include "emulator/responses_writer.hpp"

namespace balanceroute::emulator {
namespace {

constexpr std::string_view kDone = "data: [DONE]\n\n";
constexpr std::string_view kToolArgumentsBegin = R"({\"text\":\")";  // inside a JSON string
constexpr std::string_view kToolArgumentsEnd = R"(\"})";

std::string json_string(std::string_view text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void append_number(std::string& out, std::int64_t number) {
  out += std::to_string(number);
}

void append_usage_object(std::string& out, const Usage& usage) {
  out += R"({"prompt_tokens":)";
  append_number(out, usage.prompt.count());
  out += R"(,"total_tokens":)";
  append_number(out, (usage.prompt + usage.completion).count());
  out += R"(,"completion_tokens":)";
  append_number(out, usage.completion.count());
  if (usage.cached) {
    out += R"(,"prompt_tokens_details":{"cached_tokens":)";
    append_number(out, usage.cached->count());
    out += '}';
  }
  out += '}';
}

// One entry for each token of the piece.
template <class Append>
void append_list(std::string& out, std::string_view name, const Piece& piece, Append append) {
  out += '"';
  out += name;
  out += "\":[";
  for (auto number = piece.first; number <= piece.last; number += Tokens{1}) {
    if (number > piece.first) out += ',';
    append(number);
  }
  out += ']';
}

// Those that the client sent; of a text, made-up ones.
void append_prompt_ids(std::string& out, const Prompt& prompt) {
  constexpr std::int64_t kMadeUpIds = 1000;
  out += R"("prompt_token_ids":[)";
  for (std::int64_t i = 0; i < prompt.tokens.count(); ++i) {
    if (i > 0) out += ',';
    append_number(out,
                  prompt.ids.empty() ? i % kMadeUpIds : prompt.ids[static_cast<std::size_t>(i) % prompt.ids.size()]);
  }
  out += ']';
}

}  // namespace

std::unique_ptr<AnswerWriter> make_answer_writer(const AnswerShape& shape, std::string_view id, std::int64_t created,
                                                 std::string_view model) {
  switch (shape.api) {
    case Api::responses:
      return std::make_unique<ResponsesWriter>(shape, id, created, model);
    case Api::messages:
      return std::make_unique<MessagesWriter>(shape, id, model);
    default:
      return std::make_unique<AnswerFormat>(shape, id, created, model);
  }
}

AnswerFormat::AnswerFormat(const AnswerShape& shape, std::string_view id, std::int64_t created, std::string_view model)
    : shape_{shape},
      call_id_{json_string("call_" + std::string{id})},
      tool_{shape.tool.empty() ? "" : json_string(shape.tool)} {
  const bool chat = shape.api == Api::chat;
  const auto quoted_id = json_string((chat ? "chatcmpl-" : "cmpl-") + std::string{id});
  const auto rest =
      R"(","created":)" + std::to_string(created) + R"(,"model":)" + json_string(model) + R"(,"choices":[)";
  const auto head = [&](const std::string& object) {
    return R"({"id":)" + quoted_id + R"(,"object":")" + object + rest;
  };
  event_head_ = "data: " + head(chat ? "chat.completion.chunk" : "text_completion");
  whole_head_ = head(chat ? "chat.completion" : "text_completion");
}

std::string_view AnswerFormat::reasoning_name() const {
  return shape_.sglang ? "reasoning_content" : "reasoning";
}

void AnswerFormat::append_texts(std::string& out, Tokens first, Tokens last) const {
  append_token_texts(out, first, last, shape_.numbered);
}

void AnswerFormat::append_opening(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) {
  if (shape_.api == Api::completions) return;
  begin_event(out, choice);
  out += R"("delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null})";
  if (shape_.token_ids) {
    out += "],";
    append_prompt_ids(out, prompt);
    out.pop_back();  // the list's end stands in for that of the choices
  }
  end_event(out, usage);
}

void AnswerFormat::append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) {
  begin_event(out, choice);
  if (shape_.api == Api::completions) {
    out += R"("text":")";
    append_texts(out, piece.first, piece.last);
    out += '"';
  } else {
    append_delta(out, choice, piece);
  }
  append_logprobs(out, piece);
  append_end_of_choice(out, piece);
  if (piece.opens && shape_.token_ids && shape_.api == Api::completions) {
    out.back() = ',';
    append_prompt_ids(out, *piece.prompt);
    out += '}';
  }
  end_event(out, usage);
}

void AnswerFormat::append_delta(std::string& out, std::size_t choice, const Piece& piece) const {
  if (!shape_.tool.empty() && !piece.reasoning) {
    append_tool_delta(out, choice, piece);
    return;
  }
  out += R"("delta":{")";
  out += piece.reasoning ? reasoning_name() : "content";
  out += R"(":")";
  append_texts(out, piece.first, piece.last);
  out += R"("})";
}

void AnswerFormat::append_tool_delta(std::string& out, std::size_t choice, const Piece& piece) const {
  out += R"("delta":{"tool_calls":[{"index":0,)";
  if (piece.opens_call) {
    out += R"("id":)" + call_id_;
    out.insert(out.size() - 1, "-" + std::to_string(choice));
    out += R"(,"type":"function","function":{"name":)" + tool_ + R"(,"arguments":")";
    out += kToolArgumentsBegin;
  } else {
    out += R"("function":{"arguments":")";
  }
  append_texts(out, piece.first, piece.last);
  if (!piece.finish_reason.empty()) out += kToolArgumentsEnd;
  out += R"("}}]})";
}

void AnswerFormat::append_logprobs(std::string& out, const Piece& piece) const {
  if (!shape_.logprobs) {
    out += R"(,"logprobs":null)";
    return;
  }
  out += R"(,"logprobs":{)";
  const auto quoted = [&](Tokens number) {
    out += '"';
    append_token_text(out, number, shape_.numbered);
    out += '"';
  };
  if (shape_.api == Api::chat) {
    append_list(out, "content", piece, [&](Tokens number) {
      out += R"({"token":)";
      quoted(number);
      out += R"(,"logprob":-0.5,"bytes":null,"top_logprobs":[]})";
    });
  } else {
    std::string text;
    append_list(out, "text_offset", piece, [&](Tokens number) {
      append_number(out, std::ssize(text));
      append_token_text(text, number, shape_.numbered);
    });
    append_list(out += ',', "token_logprobs", piece, [&](Tokens) { out += "-0.5"; });
    append_list(out += ',', "tokens", piece, quoted);
    append_list(out += ',', "top_logprobs", piece, [&](Tokens) { out += "{}"; });
  }
  out += '}';
}

void AnswerFormat::append_end_of_choice(std::string& out, const Piece& piece) const {
  if (piece.finish_reason.empty()) {
    out += R"(,"finish_reason":null)";
  } else {
    out += R"(,"finish_reason":")";
    out += piece.finish_reason;
    out += shape_.sglang ? R"(","matched_stop":)" : R"(","stop_reason":)";
    out += piece.stop_reason.empty() ? "null" : json_string(piece.stop_reason);
  }
  if (shape_.token_ids) {
    append_list(out += ',', "token_ids", piece,
                [&](Tokens number) { append_number(out, kFirstTokenId + number.count()); });
  }
  out += '}';
}

void AnswerFormat::append_end(std::string& out, std::span<const FinishedChoice> /*choices*/, const Usage& usage,
                              bool usage_wanted) {
  if (usage_wanted) {
    out += event_head_;
    end_event(out, &usage);
  }
  out += kDone;
}

void AnswerFormat::append_failure(std::string& out, const ApiError& error) {
  out += "data: ";
  out += to_json(error);
  out += "\n\n";
  out += kDone;
}

std::string AnswerFormat::whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                std::string_view kv_transfer_params) {
  std::string out = whole_head_;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const Piece& piece = choices[i].tokens;
    out += i == 0 ? R"({"index":)" : R"(,{"index":)";
    append_number(out, static_cast<std::int64_t>(i));
    append_message(out, i, choices[i]);
    append_logprobs(out, piece);
    append_end_of_choice(out, piece);
    if (shape_.token_ids && shape_.api == Api::completions) {
      out.back() = ',';
      append_prompt_ids(out, *piece.prompt);
      out += '}';
    }
  }
  out += R"(],"usage":)";
  append_usage_object(out, usage);
  if (shape_.token_ids && shape_.api == Api::chat) append_prompt_ids(out += ',', *choices.front().tokens.prompt);
  if (!kv_transfer_params.empty()) {
    out += R"(,"kv_transfer_params":)";
    out += kv_transfer_params;
  }
  return out + '}';
}

void AnswerFormat::append_message(std::string& out, std::size_t choice, const FinishedChoice& finished) const {
  const Piece& piece = finished.tokens;
  if (shape_.api == Api::completions) {
    out += R"(,"text":")";
    append_texts(out, piece.first, piece.last);
    out += '"';
    return;
  }
  const Tokens spoken = std::max(piece.first, finished.reasoning + Tokens{1});
  out += R"(,"message":{"role":"assistant","content":)";
  if (shape_.tool.empty()) {
    out += '"';
    append_texts(out, spoken, piece.last);
    out += '"';
  } else {
    out += R"(null,"tool_calls":[{"id":)" + call_id_;
    out.insert(out.size() - 1, "-" + std::to_string(choice));
    out += R"(,"type":"function","function":{"name":)" + tool_ + R"(,"arguments":")";
    out += kToolArgumentsBegin;
    append_texts(out, spoken, piece.last);
    out += kToolArgumentsEnd;
    out += R"("}}])";
  }
  if (finished.reasoning >= piece.first) {
    out += ",\"";
    out += reasoning_name();
    out += R"(":")";
    append_texts(out, piece.first, std::min(piece.last, finished.reasoning));
    out += '"';
  }
  out += '}';
}

void AnswerFormat::begin_event(std::string& out, std::size_t choice) const {
  out += event_head_;
  out += R"({"index":)";
  append_number(out, static_cast<std::int64_t>(choice));
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
