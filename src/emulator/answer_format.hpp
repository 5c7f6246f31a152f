// answer_format.hpp - the text of answers and events, in the shapes of vLLM's OpenAI server.
//
// Each token's text is its number in the answer, " t1", " t2", ..., so that a client can see whether one was lost, sent
// twice or out of order.
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

// One finished answer of a request that is not streamed.
struct FinishedChoice {
  std::string_view text;
  std::string_view finish_reason;
};

void append_token_text(std::string& out, Tokens number);

// AnswerFormat writes what belongs to one request.
//   Use      append_*() add whole server-sent events to `out`; whole() is the body of an answer that is not streamed.
class AnswerFormat {
 public:
  AnswerFormat(Api api, std::string_view id, std::int64_t created, std::string_view model);

  // The first event of a chat answer; text completions have none.
  void append_role(std::string& out, std::size_t choice, const Usage* usage) const;
  // One token; an empty finish reason means that more follow.
  void append_token(std::string& out, std::size_t choice, Tokens number, std::string_view finish_reason,
                    const Usage* usage) const;
  void append_usage(std::string& out, const Usage& usage) const;
  static void append_done(std::string& out);

  [[nodiscard]] std::string whole(std::span<const FinishedChoice> choices, const Usage& usage) const;

 private:
  void begin_event(std::string& out, std::size_t choice) const;
  static void end_event(std::string& out, const Usage* usage);

  Api api_;
  std::string event_head_;  // an event up to its choices
  std::string whole_head_;  // a whole answer up to its choices
};

}  // namespace balanceroute::emulator
