// request_body.hpp - what the router reads from a generation request's body, and where it may be changed.
//
// The body itself stays text: what must change is spliced in, so unknown members, number spelling and key order reach
// the engine as the client wrote them (engine-protocols 4, OpenAI chat and text completions).
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "proxy/prompt_content.hpp"

namespace balanceroute::proxy {

// Of the last, which generates nothing, only the model's name is read.
enum class GenerationKind : std::uint8_t { ChatCompletion, TextCompletion, Response, Message, Other };

// Answers are lists of choices, which P/D dialects and token counting know how to ask for.
constexpr bool answers_in_choices(GenerationKind kind) {
  return kind == GenerationKind::ChatCompletion || kind == GenerationKind::TextCompletion;
}

// A piece of the body, by offset and length.
struct Span {
  std::size_t offset = 0;
  std::size_t length = 0;
};

// Members of the body that legs of a request may have to set or leave out.
enum class Member : std::uint8_t {
  Model,
  Stream,
  StreamOptions,
  N,
  BestOf,
  MaxTokens,
  MaxCompletionTokens,
  MinTokens,
  MinCompletionTokens,
  ContinueFinalMessage,
  AddGenerationPrompt,
  Messages,
  Prompt,
  Input,
  Store,
  Background,
  PreviousResponseId,
  MaxOutputTokens
};
inline constexpr std::size_t kMembers = 18;

std::string_view name_of(Member member);

// Where a member is: its number among all members of the body, and its value.
struct MemberPlace {
  std::size_t index = 0;
  Span value;
};

struct StreamOptions {
  Span span;               // the whole value
  bool is_object = false;  // false for null
  bool is_empty = false;
  std::optional<bool> include_usage;
  Span include_usage_span;
  std::optional<bool> continuous_usage;
  Span continuous_usage_span;
};

// GenerationBody is what the router knows of one request. Sizes: prompt is the content of one prompt, prompt_tokens is
// exact and given only for token-id prompts.
struct GenerationBody {
  std::string model;
  bool stream = false;
  std::optional<StreamOptions> stream_options;
  std::int32_t sequences = 1;  // answers generated: prompts times the larger of n and best_of
  std::int32_t prompts = 1;
  PromptContent prompt;
  std::optional<std::int64_t> prompt_tokens;
  std::optional<std::int64_t> output_limit;  // tokens of one answer, where the client sets a limit
  // The text that makes up the prompt, in its order, and what of it comes before anything a user says.
  std::vector<Span> prompt_parts;
  std::vector<Span> opening_parts;
  Span object;                             // from the opening brace to the closing one
  std::vector<std::size_t> member_begins;  // of every member, where its name begins
  std::string engine_member;               // the first by which a trusted client reaches into an engine, if any
  std::array<std::optional<MemberPlace>, kMembers> places;

  const std::optional<MemberPlace>& place(Member member) const { return places[static_cast<std::size_t>(member)]; }
  bool client_wants_usage() const { return stream_options && stream_options->include_usage.value_or(false); }
  // In every event.
  bool client_wants_continuous_usage() const {
    return client_wants_usage() && stream_options->continuous_usage.value_or(false);
  }
};

// Whether a client may reach into engines.
enum class Trust : std::uint8_t { none, full };

struct BodyError {
  std::string message;
  std::string param;  // the member at fault, empty if none
};

// Reads `body`, which must be one JSON object. Members that address an engine's inside (kv_transfer_params,
// bootstrap_room, data_parallel_rank, rid and the like) are refused, as is a second copy of a member that the router
// reads: an engine might read the other one. A response that would be stored, or goes on from one that was, is refused
// too: the next request may meet another engine.
//
// From a trusted client the former are let through, and the first of them is noted.
std::expected<GenerationBody, BodyError> read_generation_body(std::string_view body, GenerationKind kind,
                                                              Trust trust = Trust::none);
// Of a member that reaches into an engine.
BodyError refused_member(const std::string& name);

// Body edits, applied together.
class Splice {
 public:
  explicit Splice(std::string_view original) : original_{original} {}
  void replace(Span span, std::string text);
  void insert(std::size_t offset, std::string text) { replace({offset, 0}, std::move(text)); }
  std::string_view original() const { return original_; }
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

// BodyEdit makes the body of one leg out of the client's: members set, left out or added, everything else as it was.
//   Use  each member is named at most once; the client's text must outlive it.
class BodyEdit {
 public:
  BodyEdit(std::string_view text, const GenerationBody& body) : body_{body}, splice_{text} {}

  // Gives the member this value, whether it was there or not.
  void set(Member member, std::string value);
  void set_if_present(Member member, std::string value);
  void drop(Member member);
  // A member that the client did not send.
  void add(std::string_view name, std::string_view value);
  // Into a value, at a place of the client's text.
  void insert(std::size_t offset, std::string text) { splice_.insert(offset, std::move(text)); }
  // Makes a streaming request ask for the usage event; with `continuous` for usage in every event.
  void ask_for_usage(bool continuous = false);

  // What the client wrote there.
  std::string_view text_of(Span span) const { return splice_.original().substr(span.offset, span.length); }

  std::string apply() &&;

 private:
  void leave_out(std::size_t begin, std::size_t end);
  void set_option(std::string& more, std::string_view name, const std::optional<bool>& value, Span span);

  const GenerationBody& body_;
  Splice splice_;
  std::vector<std::size_t> dropped_;  // by number
  std::string added_;                 // with commas between them
};

}  // namespace balanceroute::proxy
