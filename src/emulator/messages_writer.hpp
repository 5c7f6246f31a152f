// messages_writer.hpp - answers in the words of Anthropic's Messages API, as vLLM serves it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "emulator/answer_writer.hpp"

namespace balanceroute::emulator {

// MessagesWriter words an answer as content blocks: thinking, then text or the use of a tool.
//   Stream   message_start, each block opened and closed, message_delta with the usage, message_stop.
class MessagesWriter final : public AnswerWriter {
 public:
  MessagesWriter(const AnswerShape& shape, std::string_view id, std::string_view model);

  void append_opening(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) override;
  void append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) override;
  void append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                  bool usage_wanted) override;
  void append_failure(std::string& out, const ApiError& error) override;
  [[nodiscard]] std::string whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                  std::string_view kv_transfer_params) override;

 private:
  using Json = nlohmann::ordered_json;

  void open_block(std::string& out, bool thinking);
  void close_block(std::string& out);
  [[nodiscard]] Json message_json(Json content, const Usage& usage) const;
  [[nodiscard]] std::string text_of(Tokens first, Tokens last) const;

  AnswerShape shape_;
  std::string id_;
  std::string tool_;
  std::string model_;
  std::int64_t index_ = 0;  // of the open block, or the next
  bool open_ = false;
  bool thinking_ = false;  // the open block
};

// Errors in this API's shape.
[[nodiscard]] std::string messages_error_json(const ApiError& error);

}  // namespace balanceroute::emulator
