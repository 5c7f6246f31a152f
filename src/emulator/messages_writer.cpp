#include "emulator/messages_writer.hpp"

#include <algorithm>
#include <utility>

#include "emulator/answer_text.hpp"

namespace balanceroute::emulator {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kSignature = "emulated";  // of a thinking block, which clients send back as it is

std::string_view stop_reason_of(std::string_view finish_reason) {
  if (finish_reason == "length") return "max_tokens";
  return finish_reason == "tool_calls" ? "tool_use" : "end_turn";
}

Json usage_json(const Usage& usage, Tokens output) {
  Json json{{"input_tokens", usage.prompt.count()}, {"output_tokens", output.count()}};
  if (usage.cached) json["cache_read_input_tokens"] = usage.cached->count();
  return json;
}

Json error_object(const ApiError& error) {
  return {{"type", "error"}, {"error", {{"type", error.type}, {"message", error.message}}}};
}

}  // namespace

std::string messages_error_json(const ApiError& error) {
  return json_text(error_object(error));
}

MessagesWriter::MessagesWriter(const AnswerShape& shape, std::string_view id, std::string_view model)
    : shape_{shape}, id_{id}, tool_{shape.tool}, model_{model} {}

Json MessagesWriter::message_json(Json content, const Usage& usage) const {
  return {{"id", "chatcmpl-" + id_},  // vLLM's messages are its chat answers in other words
          {"type", "message"},
          {"role", "assistant"},
          {"content", std::move(content)},
          {"model", model_},
          {"stop_reason", nullptr},
          {"stop_sequence", nullptr},
          {"usage", usage_json(usage, usage.completion)}};
}

void MessagesWriter::append_opening(std::string& out, std::size_t /*choice*/, const Prompt& prompt,
                                    const Usage* usage) {
  const Usage before{.prompt = usage != nullptr ? usage->prompt : prompt.tokens, .completion = Tokens{0}};
  append_named_event(out, "message_start",
                     {{"type", "message_start"}, {"message", message_json(Json::array(), before)}});
}

void MessagesWriter::open_block(std::string& out, bool thinking) {
  open_ = true;
  thinking_ = thinking;
  Json block{{"type", "text"}, {"text", ""}};
  if (!tool_.empty()) {
    block = {{"type", "tool_use"}, {"id", "call_" + id_}, {"name", tool_}, {"input", Json::object()}};
  }
  if (thinking) block = {{"type", "thinking"}, {"thinking", ""}};
  append_named_event(out, "content_block_start",
                     {{"type", "content_block_start"}, {"index", index_}, {"content_block", std::move(block)}});
}

void MessagesWriter::close_block(std::string& out) {
  if (thinking_) {
    append_named_event(out, "content_block_delta",
                       {{"type", "content_block_delta"},
                        {"index", index_},
                        {"delta", {{"type", "signature_delta"}, {"signature", kSignature}}}});
  }
  append_named_event(out, "content_block_stop", {{"type", "content_block_stop"}, {"index", index_++}});
  open_ = false;
}

void MessagesWriter::append_piece(std::string& out, std::size_t /*choice*/, const Piece& piece,
                                  const Usage* /*usage*/) {
  if (open_ && thinking_ != piece.reasoning) close_block(out);
  const bool begins = !open_;
  if (begins) open_block(out, piece.reasoning);
  auto text = text_of(piece.first, piece.last);
  Json delta{{"type", "text_delta"}, {"text", text}};
  if (!tool_.empty()) {
    if (begins) text.insert(0, kCallArgumentsBegin);
    if (!piece.finish_reason.empty()) text += kCallArgumentsEnd;
    delta = {{"type", "input_json_delta"}, {"partial_json", text}};
  }
  if (piece.reasoning) delta = {{"type", "thinking_delta"}, {"thinking", text_of(piece.first, piece.last)}};
  append_named_event(out, "content_block_delta",
                     {{"type", "content_block_delta"}, {"index", index_}, {"delta", std::move(delta)}});
}

void MessagesWriter::append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                                bool /*usage_wanted*/) {
  close_block(out);
  append_named_event(out, "message_delta",
                     {{"type", "message_delta"},
                      {"delta", {{"stop_reason", stop_reason_of(choices.front().tokens.finish_reason)}}},
                      {"usage", usage_json(usage, usage.completion)}});
  append_named_event(out, "message_stop", {{"type", "message_stop"}});
}

void MessagesWriter::append_failure(std::string& out, const ApiError& error) {
  append_named_event(out, "error", error_object(error));
}

std::string MessagesWriter::whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                  std::string_view /*kv_transfer_params*/) {
  const FinishedChoice& choice = choices.front();
  Json content = Json::array();
  if (choice.reasoning >= choice.tokens.first) {
    const auto thought = text_of(choice.tokens.first, std::min(choice.tokens.last, choice.reasoning));
    content.push_back({{"type", "thinking"}, {"thinking", thought}, {"signature", kSignature}});
  }
  const Tokens first_spoken = std::max(choice.tokens.first, choice.reasoning + Tokens{1});
  const auto text = text_of(first_spoken, choice.tokens.last);
  if (!tool_.empty()) {
    content.push_back({{"type", "tool_use"}, {"id", "call_" + id_}, {"name", tool_}, {"input", {{"text", text}}}});
  } else if (first_spoken <= choice.tokens.last) {
    content.push_back({{"type", "text"}, {"text", text}});
  }
  auto message = message_json(std::move(content), usage);
  message["stop_reason"] = stop_reason_of(choice.tokens.finish_reason);
  return json_text(message);
}

std::string MessagesWriter::text_of(Tokens first, Tokens last) const {
  std::string text;
  append_token_texts(text, first, last, shape_.numbered);
  return text;
}

}  // namespace balanceroute::emulator
