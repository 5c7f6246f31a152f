// request_body.hpp - what the router reads from a generation request's body, and where it may be changed.
//
// The body itself stays text: what must change is spliced in, so unknown members, number spelling and key order reach
// the engine as the client wrote them (engine-protocols 4, OpenAI chat and text completions).
#pragma once

#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace balanceroute::proxy {

enum class GenerationKind : std::uint8_t { ChatCompletion, TextCompletion };

// A piece of the body, by offset and length.
struct Span {
  std::size_t offset = 0;
  std::size_t length = 0;
};

struct StreamOptions {
  Span span;               // the whole value
  bool is_object = false;  // false for null
  bool is_empty = false;
  std::optional<bool> include_usage;
  Span include_usage_span;
};

// GenerationBody is what the router knows of one request. Sizes: prompt_bytes counts the text of one prompt as JSON,
// prompt_tokens is exact and given only for token-id prompts.
struct GenerationBody {
  std::string model;
  Span model_span;
  bool stream = false;
  std::optional<StreamOptions> stream_options;
  std::int32_t sequences = 1;  // answers generated: prompts times the larger of n and best_of
  std::size_t prompt_bytes = 0;
  std::optional<std::int64_t> prompt_tokens;
  Span object;  // from the opening brace to the closing one

  bool client_wants_usage() const { return stream_options && stream_options->include_usage.value_or(false); }
};

struct BodyError {
  std::string message;
  std::string param;  // the member at fault, empty if none
};

// Reads `body`, which must be one JSON object. Members that address an engine's inside (kv_transfer_params,
// bootstrap_room, data_parallel_rank, rid and the like) are refused, as is a second copy of a member that the router
// reads: an engine might read the other one.
std::expected<GenerationBody, BodyError> read_generation_body(std::string_view body, GenerationKind kind);

// Body edits, applied together.
class Splice {
 public:
  explicit Splice(std::string_view original) : original_{original} {}
  void replace(Span span, std::string text);
  void insert(std::size_t offset, std::string text) { replace({offset, 0}, std::move(text)); }
  bool empty() const { return edits_.empty(); }
  // The edits must not overlap.
  std::string apply() const;

 private:
  struct Edit {
    Span span;
    std::string text;
  };
  std::string_view original_;
  std::vector<Edit> edits_;  // by offset
};

// Makes a streaming request ask for the usage event.
void ask_for_usage(const GenerationBody& body, Splice& splice);

}  // namespace balanceroute::proxy
