#include "emulator/responses_writer.hpp"

#include <algorithm>
#include <utility>

#include "emulator/answer_text.hpp"

namespace balanceroute::emulator {

ResponsesWriter::ResponsesWriter(const AnswerShape& shape, std::string_view id, std::int64_t created,
                                 std::string_view model)
    : shape_{shape}, id_{id}, tool_{shape.tool}, created_{created}, model_{model} {}

ResponsesWriter::Item ResponsesWriter::item_of(bool reasoning) const {
  if (reasoning) return Item::reasoning;
  return tool_.empty() ? Item::message : Item::call;
}

void ResponsesWriter::append(std::string& out, std::string_view type, const Json& members) {
  Json event{{"type", type}, {"sequence_number", sequence_++}};
  event.update(members);
  append_named_event(out, type, event);
}

// Which part of the output an event is about.
ResponsesWriter::Json ResponsesWriter::place() const {
  Json where{{"item_id", "item_" + id_ + "-" + std::to_string(output_index_)}, {"output_index", output_index_}};
  if (open_ != Item::call) where["content_index"] = 0;
  return where;
}

ResponsesWriter::Json ResponsesWriter::part_json(std::string_view text) const {
  if (open_ == Item::reasoning) return {{"type", "reasoning_text"}, {"text", text}};
  return {{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}, {"logprobs", Json::array()}};
}

ResponsesWriter::Json ResponsesWriter::item_json(Item item, std::string_view text, std::string_view status) const {
  const bool begun = status != "in_progress";
  switch (item) {
    case Item::reasoning: {
      Json json{{"type", "reasoning"}, {"id", "rs_" + id_}, {"summary", Json::array()}, {"status", status}};
      if (begun) json["content"] = Json::array({{{"type", "reasoning_text"}, {"text", text}}});
      return json;
    }
    case Item::call:
      return {{"type", "function_call"}, {"id", "fc_" + id_}, {"call_id", "call_" + id_},
              {"name", tool_},           {"arguments", text}, {"status", status}};
    default: {
      Json content = Json::array();
      if (begun) content.push_back({{"type", "output_text"}, {"text", text}, {"annotations", Json::array()}});
      return {{"type", "message"},
              {"id", "msg_" + id_},
              {"role", "assistant"},
              {"content", std::move(content)},
              {"status", status}};
    }
  }
}

ResponsesWriter::Json ResponsesWriter::response_json(std::string_view status, Json output) const {
  return {{"id", "resp_" + id_},
          {"object", "response"},
          {"created_at", created_},
          {"status", status},
          {"background", false},
          {"error", nullptr},
          {"incomplete_details", nullptr},
          {"instructions", nullptr},
          {"metadata", nullptr},
          {"model", model_},
          {"output", std::move(output)},
          {"parallel_tool_calls", true},
          {"previous_response_id", nullptr},
          {"temperature", 1.0},
          {"tool_choice", "auto"},
          {"tools", Json::array()},
          {"top_p", 1.0},
          {"usage", nullptr}};
}

void ResponsesWriter::append_opening(std::string& out, std::size_t /*choice*/, const Prompt& /*prompt*/,
                                     const Usage* /*usage*/) {
  append(out, "response.created", {{"response", response_json("in_progress", Json::array())}});
  append(out, "response.in_progress", {{"response", response_json("in_progress", Json::array())}});
}

void ResponsesWriter::open_item(std::string& out, Item item) {
  open_ = item;
  item_text_.clear();
  append(out, "response.output_item.added",
         {{"output_index", output_index_}, {"item", item_json(item, "", "in_progress")}});
  if (item == Item::call) {
    item_text_ = kCallArgumentsBegin;
    return;
  }
  Json members = place();
  members["part"] = part_json("");
  append(out, "response.content_part.added", members);
}

void ResponsesWriter::append_piece(std::string& out, std::size_t /*choice*/, const Piece& piece,
                                   const Usage* /*usage*/) {
  const Item item = item_of(piece.reasoning);
  if (open_ != item) {
    if (open_ != Item::none) close_item(out);
    open_item(out, item);
  }
  const auto text = text_of(piece.first, piece.last);
  Json members = place();
  members["delta"] = (item_text_ == kCallArgumentsBegin ? item_text_ : "") + text;
  item_text_ += text;
  const auto ends = !piece.finish_reason.empty();
  if (item == Item::call && ends) {
    members["delta"] = members["delta"].get<std::string>().append(kCallArgumentsEnd);
    item_text_ += kCallArgumentsEnd;
  }
  const std::string_view type = item == Item::reasoning ? "response.reasoning_text.delta"
                                : item == Item::call    ? "response.function_call_arguments.delta"
                                                        : "response.output_text.delta";
  append(out, type, members);
  if (ends) close_item(out);
}

void ResponsesWriter::close_item(std::string& out) {
  Json done = place();
  if (open_ == Item::call) {
    done["arguments"] = item_text_;
    append(out, "response.function_call_arguments.done", done);
  } else {
    done["text"] = item_text_;
    append(out, open_ == Item::reasoning ? "response.reasoning_text.done" : "response.output_text.done", done);
    Json part = place();
    part["part"] = part_json(item_text_);
    append(out, "response.content_part.done", part);
  }
  append(out, "response.output_item.done",
         {{"output_index", output_index_}, {"item", item_json(open_, item_text_, "completed")}});
  open_ = Item::none;
  ++output_index_;
}

ResponsesWriter::Json ResponsesWriter::finished_json(const FinishedChoice& choice, const Usage& usage) const {
  Json output = Json::array();
  const Tokens first_spoken = std::max(choice.tokens.first, choice.reasoning + Tokens{1});
  if (choice.reasoning >= choice.tokens.first) {
    const auto thought = text_of(choice.tokens.first, std::min(choice.tokens.last, choice.reasoning));
    output.push_back(item_json(Item::reasoning, thought, "completed"));
  }
  auto text = text_of(first_spoken, choice.tokens.last);
  if (!tool_.empty()) text = std::string{kCallArgumentsBegin} + text + std::string{kCallArgumentsEnd};
  if (first_spoken <= choice.tokens.last) output.push_back(item_json(item_of(false), text, "completed"));
  const Tokens reasoning =
      std::max(std::min(choice.reasoning, choice.tokens.last) - choice.tokens.first + Tokens{1}, Tokens{0});
  const bool cut = choice.tokens.finish_reason == "length";
  auto response = response_json(cut ? "incomplete" : "completed", std::move(output));
  if (cut) response["incomplete_details"] = {{"reason", "max_output_tokens"}};
  response["usage"] = {{"input_tokens", usage.prompt.count()},
                       {"input_tokens_details", {{"cached_tokens", usage.cached.value_or(Tokens{0}).count()}}},
                       {"output_tokens", usage.completion.count()},
                       {"output_tokens_details", {{"reasoning_tokens", reasoning.count()}}},
                       {"total_tokens", (usage.prompt + usage.completion).count()}};
  return response;
}

void ResponsesWriter::append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                                 bool /*usage_wanted*/) {
  append(out, "response.completed", {{"response", finished_json(choices.front(), usage)}});
}

void ResponsesWriter::append_failure(std::string& out, const ApiError& error) {
  append(out, "error", {{"code", error.type}, {"message", error.message}, {"param", nullptr}});
}

std::string ResponsesWriter::whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                   std::string_view /*kv_transfer_params*/) {
  return json_text(finished_json(choices.front(), usage));
}

std::string ResponsesWriter::text_of(Tokens first, Tokens last) const {
  std::string text;
  append_token_texts(text, first, last, shape_.numbered);
  return text;
}

}  // namespace balanceroute::emulator
