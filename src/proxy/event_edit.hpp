// event_edit.hpp - where an event, or an answer in one piece, says what a router may have to change in it.
//
// Read only where an answer is pieced together from several workers' (continuation.hpp), and where a worker is asked
// for usage in every event (token_progress.hpp); other events pass unread by this.
#pragma once

#include <optional>
#include <string_view>

#include "proxy/request_body.hpp"

namespace balanceroute::proxy {

// Values in the text of a chunk, strings with their quotes; of the first choice where choices have them.
struct EventPlaces {
  std::optional<Span> id;
  std::optional<Span> text;  // of a text completion, a delta or a message
  std::optional<Span> finish_reason;
  std::optional<Span> stop_reason;
  std::optional<Span> usage;  // the whole object
  std::optional<Span> prompt_tokens;
  std::optional<Span> completion_tokens;
  std::optional<Span> total_tokens;
};

[[nodiscard]] EventPlaces places_in(std::string_view json);

// An event, whose data is `json`, without its member `usage`.
[[nodiscard]] std::string without_usage(std::string_view event, std::string_view json);

}  // namespace balanceroute::proxy
