// responses_writer.hpp - answers in the words of OpenAI's Responses API, as vLLM serves it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "emulator/answer_writer.hpp"

namespace balanceroute::emulator {

// ResponsesWriter words an answer as a list of output items: reasoning, then a message or the call of a function.
//   Stream   each item is opened, told piece by piece and closed with its whole text; response.completed ends it.
class ResponsesWriter final : public AnswerWriter {
 public:
  ResponsesWriter(const AnswerShape& shape, std::string_view id, std::int64_t created, std::string_view model);

  void append_opening(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) override;
  void append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) override;
  void append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                  bool usage_wanted) override;
  void append_failure(std::string& out, const ApiError& error) override;
  [[nodiscard]] std::string whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                  std::string_view kv_transfer_params) override;

 private:
  using Json = nlohmann::ordered_json;
  enum class Item { none, reasoning, message, call };

  [[nodiscard]] Item item_of(bool reasoning) const;
  void append(std::string& out, std::string_view type, const Json& members);
  void open_item(std::string& out, Item item);
  void close_item(std::string& out);
  [[nodiscard]] Json place() const;
  [[nodiscard]] Json item_json(Item item, std::string_view text, std::string_view status) const;
  [[nodiscard]] Json part_json(std::string_view text) const;
  [[nodiscard]] Json response_json(std::string_view status, Json output) const;
  [[nodiscard]] Json finished_json(const FinishedChoice& choice, const Usage& usage) const;
  [[nodiscard]] std::string text_of(Tokens first, Tokens last) const;

  AnswerShape shape_;
  std::string id_;
  std::string tool_;
  std::int64_t created_;
  std::string model_;
  std::int64_t sequence_ = 0;
  std::int64_t output_index_ = 0;
  Item open_ = Item::none;
  std::string item_text_;  // of the open one, so far
};

}  // namespace balanceroute::emulator
