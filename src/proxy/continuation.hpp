// continuation.hpp - an answer that its worker gave up and another one goes on with.
//
// A vllm-ascend decode worker whose KV space is full ends a running answer with stop_reason "recomputed". The request
// then starts anew with what was generated as part of its prompt, and its client sees one answer. Leaves out what text
// cannot carry over: seeds, penalties, stop strings across the seam, structured output; answers with reasoning or tool
// calls, several answers and prompts of token ids are not gone on with. Source: engine-protocols 1.7.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "proxy/request_body.hpp"

namespace balanceroute::proxy {

// What an answer has brought on the workers that gave it up.
struct Continuation {
  std::string text;
  std::int64_t tokens = 0;
  std::int64_t prompt_tokens = 0;  // of the client's own prompt
  std::string answer_id;           // as the client has seen it, in quotes; empty: not yet
  std::int32_t times = 0;          // it has been given up

  [[nodiscard]] bool begun() const { return times > 0; }
};

// Whether text that comes back can be made part of the request's prompt.
[[nodiscard]] bool can_go_on(const GenerationBody& body, GenerationKind kind);

// Makes what was generated part of the prompt; and the limits those of the rest.
void extend_prompt(BodyEdit& edit, const GenerationBody& body, GenerationKind kind, const Continuation& so_far);
void shorten_limits(BodyEdit& edit, const GenerationBody& body, GenerationKind kind, const Continuation& so_far);

// An event, or a whole answer's JSON, of a later worker as a part of the one answer: its id, its usage and, of a whole
// answer, all of its text.
[[nodiscard]] std::string as_part_of(std::string_view event, std::string_view json, const Continuation& so_far);
[[nodiscard]] std::string as_whole_of(std::string_view json, const Continuation& so_far);

// The last event of a worker that gives up, without its end.
[[nodiscard]] std::string without_end(std::string_view event, std::string_view json);

}  // namespace balanceroute::proxy
