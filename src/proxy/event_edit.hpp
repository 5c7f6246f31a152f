// event_edit.hpp - where an event, or an answer in one piece, says what a router may have to change in it.
//
// Read only where an answer is pieced together from several workers' (continuation.hpp), where a worker is asked for
// usage in every event (token_progress.hpp), and where one did not compute the prompt itself; other events pass unread
// by this.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
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
  std::optional<Span> cached_tokens;
  std::optional<Span> details;             // prompt_tokens_details: the whole object, or null
  std::optional<Span> kv_transfer_params;  // the whole object
};

// What a prefill engine says of a prompt's tokens that it had cached; nothing where it does not tell.
struct CachedPrompt {
  std::optional<std::int64_t> told;
};

[[nodiscard]] EventPlaces places_in(std::string_view json);

// An event, whose data is `json`, without its member `usage`.
[[nodiscard]] std::string without_usage(std::string_view event, std::string_view json);

// An answer in one piece without what its engine tells other engines (kv_transfer_params).
[[nodiscard]] std::string without_transfer(std::string_view json);

// An event, whose data is `json`, whose usage tells the cached tokens of the engine that computed the prompt, where
// either engine tells some; of those who do not tell there are none.
[[nodiscard]] std::string with_cached(std::string_view event, std::string_view json, const CachedPrompt& cached);

}  // namespace balanceroute::proxy
