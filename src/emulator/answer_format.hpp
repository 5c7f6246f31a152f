// answer_format.hpp - the text of answers and events, in the shapes of vLLM's and SGLang's OpenAI servers.
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
#include "emulator/generation_request.hpp"

namespace balanceroute::emulator {

struct Usage {
  Tokens prompt;
  Tokens completion;
};

// What all parts of one answer have in common.
struct AnswerShape {
  Api api = Api::chat;
  bool sglang = false;         // its names of members, where they differ
  bool numbered = true;        // else all tokens have the same text
  bool token_ids = false;      // ids are told beside the text
  bool logprobs = false;       // and made-up probabilities
  std::string_view tool = {};  // tokens are arguments of a call of this function
};

// Tokens `first` to `last` of one choice, and why it ended with them. None when `last` is below `first`.
struct Piece {
  Tokens first;
  Tokens last;
  bool opens = false;                   // the choice begins with it
  bool opens_call = false;              // or the call of a function that it makes
  bool reasoning = false;               // the model thinks aloud
  std::string_view finish_reason = {};  // empty: more follow
  std::string_view stop_reason = {};    // empty: null
  const Prompt* prompt = nullptr;       // whose ids are told with it, where ids are told
};

// One finished choice of an answer that is not streamed; of its tokens those up to `reasoning` are reasoning.
struct FinishedChoice {
  Piece tokens;
  Tokens reasoning{0};
};

// AnswerFormat writes what belongs to one request.
//   Use      append_*() add whole server-sent events to `out`; whole() is the body of an answer that is not streamed.
class AnswerFormat {
 public:
  AnswerFormat(const AnswerShape& shape, std::string_view id, std::int64_t created, std::string_view model);

  // The first event of a chat answer; text completions have none.
  void append_role(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) const;
  void append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) const;
  void append_usage(std::string& out, const Usage& usage) const;
  static void append_done(std::string& out);

  // A transfer object that is not empty is told as kv_transfer_params.
  [[nodiscard]] std::string whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                  std::string_view kv_transfer_params = {}) const;

 private:
  void begin_event(std::string& out, std::size_t choice) const;
  static void end_event(std::string& out, const Usage* usage);
  void append_delta(std::string& out, std::size_t choice, const Piece& piece) const;
  void append_tool_delta(std::string& out, std::size_t choice, const Piece& piece) const;
  void append_message(std::string& out, std::size_t choice, const FinishedChoice& finished) const;
  void append_texts(std::string& out, Tokens first, Tokens last) const;
  void append_text(std::string& out, Tokens number) const;
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
