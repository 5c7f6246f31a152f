// stream_event.hpp - what one SSE event of an engine's answer says about progress.
//
// Source: engine-protocols 4.1 to 4.6. Events are read, never changed here.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace balanceroute::proxy {

struct Usage {
  std::int64_t prompt_tokens = 0;
  std::int64_t completion_tokens = 0;
  std::optional<std::int64_t> cached_tokens = {};  // of the prompt
};

struct StreamEvent {
  bool done = false;          // data: [DONE], or the last event of a response or a message
  bool error = false;         // an error object instead of a chunk
  std::string error_message;  // of that error
  bool refusal = false;       // the error is the request's own: it says a status of 400 to 499
  bool readable = true;       // false: data that is not a JSON object
  bool usage_only = false;    // the extra event that include_usage asks for: usage, and no choices
  std::int32_t tokens = 0;    // tokens of all its choices: token ids where given, else one for each with content
  std::int32_t finished = 0;  // choices that end here
  // Of its last choice. Text and reason are valid until the next event is read on this thread.
  std::string_view text;
  std::string_view finish_reason;  // empty: none
  bool other_content = false;      // reasoning or tool calls
  bool opens = false;              // it names the role and brings nothing else
  bool recomputed = false;         // its worker gives the answer up (engine-protocols 1.7)
  std::optional<Usage> usage;
};

// `data` is the event's data as net::sse_data gives it.
StreamEvent read_stream_event(std::string_view data);

// A whole (not streamed) answer: its usage, and its last choice as of an event.
StreamEvent read_whole_answer(std::string_view body);

}  // namespace balanceroute::proxy
