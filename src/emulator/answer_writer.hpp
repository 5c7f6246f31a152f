// answer_writer.hpp - what an answer is made of, and the interface of those who put it into the words of an API.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "emulator/generation_request.hpp"

namespace balanceroute::emulator {

struct Usage {
  Tokens prompt;
  Tokens completion;
  std::optional<Tokens> cached = {};  // of the prompt; nothing: not told
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

// One finished choice as a whole; of its tokens those up to `reasoning` are reasoning.
struct FinishedChoice {
  Piece tokens;
  Tokens reasoning{0};
};

// AnswerWriter words one answer: as a stream by append_opening(), append_piece() for each piece of each choice and
// append_end(), or by append_failure() where it breaks off; or in one piece by whole().
//   Pieces   of one choice come in order; none is partly reasoning. `usage` is what has been used with them.
//   Output   append_*() add whole server-sent events to `out`.
class AnswerWriter {
 public:
  virtual ~AnswerWriter() = default;

  virtual void append_opening(std::string& out, std::size_t choice, const Prompt& prompt, const Usage* usage) = 0;
  virtual void append_piece(std::string& out, std::size_t choice, const Piece& piece, const Usage* usage) = 0;
  // `usage_wanted`: whether the client asked for it, where an API leaves that to it.
  virtual void append_end(std::string& out, std::span<const FinishedChoice> choices, const Usage& usage,
                          bool usage_wanted) = 0;
  virtual void append_failure(std::string& out, const ApiError& error) = 0;
  // A transfer object that is not empty is told as kv_transfer_params.
  [[nodiscard]] virtual std::string whole(std::span<const FinishedChoice> choices, const Usage& usage,
                                          std::string_view kv_transfer_params) = 0;
};

// For the API of `shape`; `id` is the request's.
[[nodiscard]] std::unique_ptr<AnswerWriter> make_answer_writer(const AnswerShape& shape, std::string_view id,
                                                               std::int64_t created, std::string_view model);

}  // namespace balanceroute::emulator
