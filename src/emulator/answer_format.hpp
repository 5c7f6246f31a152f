// answer_format.hpp - chats and text completions as vLLM's and SGLang's OpenAI servers word them.
//
// Each token's text is its number in the answer, " t1", " t2", ..., so that a client can see whether one was lost, sent
// twice or out of order. Its id is kFirstTokenId more.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "emulator/answer_writer.hpp"

namespace balanceroute::emulator {

// AnswerFormat words chats and text completions.
class AnswerFormat final : public AnswerWriter {
 public:
  AnswerFormat(const AnswerShape& shape, std::string_view id, std::int64_t created, std::string_view model);

  // The event with the role; text completions have none.
  void append_opening(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) override;
  void append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) override;
  void append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                  bool usage_wanted) override;
  void append_failure(std::string& out, const ApiError& error) override;
  [[nodiscard]] std::string whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                  std::string_view kv_transfer_params) override;

 private:
  void begin_event(std::string& out, std::size_t choice) const;
  static void end_event(std::string& out, const Usage* usage);
  void append_delta(std::string& out, std::size_t choice, const Piece& piece) const;
  void append_tool_delta(std::string& out, std::size_t choice, const Piece& piece) const;
  void append_message(std::string& out, std::size_t choice, const FinishedChoice& finished) const;
  void append_texts(std::string& out, Tokens first, Tokens last) const;
  void append_logprobs(std::string& out, const Piece& piece) const;
  void append_end_of_choice(std::string& out, const Piece& piece) const;
  [[nodiscard]] std::string_view reasoning_name() const;

  AnswerShape shape_;
  std::string call_id_;
  std::string tool_;        // quoted
  std::string event_head_;  // an event up to its choices
  std::string whole_head_;  // a whole answer up to its choices
};

}  // namespace balanceroute::emulator
