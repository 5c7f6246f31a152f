#include "proxy/request_body.hpp"

#include <simdjson.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

#include "proxy/message_count.hpp"

namespace balanceroute::proxy {

namespace {

namespace ondemand = simdjson::ondemand;

// Members by which a client could reach into an engine (engine-protocols 1 and 2).
constexpr std::array<std::string_view, 10> kEngineMembers{"kv_transfer_params",
                                                          "bootstrap_host",
                                                          "bootstrap_port",
                                                          "bootstrap_room",
                                                          "routed_dp_rank",
                                                          "data_parallel_rank",
                                                          "rid",
                                                          "disagg_prefill_dp_rank",
                                                          "batch_kv_transfer_params",
                                                          "disagg_prefill_resp"};

// By Member.
constexpr std::array<std::string_view, kMembers> kReadMembers{"model",
                                                              "stream",
                                                              "stream_options",
                                                              "n",
                                                              "best_of",
                                                              "max_tokens",
                                                              "max_completion_tokens",
                                                              "min_tokens",
                                                              "min_completion_tokens",
                                                              "continue_final_message",
                                                              "add_generation_prompt",
                                                              "messages",
                                                              "prompt",
                                                              "input",
                                                              "store",
                                                              "background",
                                                              "previous_response_id",
                                                              "max_output_tokens"};

constexpr std::int64_t kMaxSequences = 65'536;

BodyError not_json(simdjson::error_code failure) {
  return {std::string{"body is not valid JSON: "} + simdjson::error_message(failure), ""};
}

BodyError wrong(std::string_view param, std::string_view expected) {
  return {"'" + std::string{param} + "': expected " + std::string{expected}, std::string{param}};
}

std::string_view trimmed(std::string_view raw) {
  const auto end = raw.find_last_not_of(" \t\r\n");
  return raw.substr(0, end == std::string_view::npos ? 0 : end + 1);
}

simdjson::simdjson_result<std::string_view> trimmed_result(simdjson::simdjson_result<std::string_view> raw) {
  std::string_view text;
  if (const auto failure = std::move(raw).get(text)) return failure;
  return trimmed(text);
}

// The value's own bytes in the body. simdjson lets those of an object or an array end where the next token begins.
simdjson::simdjson_result<std::string_view> raw_json(ondemand::value value) {
  ondemand::json_type type{};
  if (const auto failure = value.type().get(type)) return failure;
  if (type == ondemand::json_type::object) {
    ondemand::object object;
    if (const auto failure = value.get_object().get(object)) return failure;
    return trimmed_result(object.raw_json());
  }
  if (type == ondemand::json_type::array) {
    ondemand::array array;
    if (const auto failure = value.get_array().get(array)) return failure;
    return trimmed_result(array.raw_json());
  }
  return trimmed(value.raw_json_token());
}

// One pass over the members of the body.
class BodyReader {
 public:
  BodyReader(std::string_view body, GenerationKind kind, Trust trust) : kind_{kind}, trust_{trust}, text_{body} {}

  std::expected<GenerationBody, BodyError> read() {
    thread_local ondemand::parser parser;
    ondemand::document document;
    if (const auto failure = parser.iterate(text_).get(document)) return std::unexpected(not_json(failure));
    ondemand::object object;
    if (const auto failure = document.get_object().get(object)) {
      return std::unexpected(failure == simdjson::INCORRECT_TYPE ? BodyError{"body is not a JSON object", ""}
                                                                 : not_json(failure));
    }
    for (auto field : object) {
      const auto read = read_field(field);
      if (!read) return std::unexpected(read.error());
    }
    const char* trailing = nullptr;
    if (!document.current_location().get(trailing))
      return std::unexpected(BodyError{"body has something after the JSON object", ""});
    return finish();
  }

 private:
  using Read = std::expected<void, BodyError>;

  Read read_field(simdjson::simdjson_result<ondemand::field> result) {
    ondemand::field field;
    if (const auto failure = std::move(result).get(field)) return std::unexpected(not_json(failure));
    const auto begin = static_cast<std::size_t>(field.key().raw() - 1 - text_.data());  // with its quote
    std::string_view key;
    if (const auto failure = field.unescaped_key().get(key)) return std::unexpected(not_json(failure));
    body_.member_begins.push_back(begin);
    if (std::ranges::find(kEngineMembers, key) != kEngineMembers.end()) {
      if (trust_ == Trust::none) return std::unexpected(refused_member(std::string{key}));
      if (body_.engine_member.empty()) body_.engine_member = key;
    }
    const auto known = std::ranges::find(kReadMembers, key);
    if (known == kReadMembers.end()) {
      std::string_view skipped;
      if (const auto failure = raw_json(field.value()).get(skipped)) return std::unexpected(not_json(failure));
      if (key == "tools") add_to_opening(PromptPart::Tools, skipped);
      if (key == "system" || key == "instructions") add_to_opening(PromptPart::System, skipped);
      return {};
    }
    auto& place = body_.places[static_cast<std::size_t>(known - kReadMembers.begin())];
    if (place) return std::unexpected(wrong(*known, "it once, but the body has it twice"));
    place = MemberPlace{.index = body_.member_begins.size() - 1, .value = {}};
    return read_member(*known, *place, field.value());
  }

  Read read_member(std::string_view name, MemberPlace& place, ondemand::value value) {
    const bool has_messages = kind_ == GenerationKind::ChatCompletion || kind_ == GenerationKind::Message;
    if (name == "messages" && has_messages) return read_messages(name, place, value);
    if (name == "prompt" && kind_ == GenerationKind::TextCompletion) return read_prompt(place, value);
    if (name == "stream_options" && answers_in_choices(kind_)) return read_stream_options(place, value);
    if (kind_ == GenerationKind::Response && is_of_responses(name)) return read_of_response(name, place, value);
    const bool counts = (name == "n" || name == "best_of") && answers_in_choices(kind_);
    const bool scalar = name == "model" || (name == "stream" && kind_ != GenerationKind::Other) || counts;
    if (!scalar) {
      std::string_view raw;
      if (const auto failure = raw_json(value).get(raw)) return std::unexpected(not_json(failure));
      place.value = span_of(raw);
      return {};
    }
    place.value = span_of(trimmed(value.raw_json_token()));
    if (name == "model") return read_model(value);
    if (name == "stream") return read_bool(name, value, body_.stream);
    return read_count(name, value, name == "n" ? n_ : best_of_);
  }

  static bool is_of_responses(std::string_view name) {
    return name == "input" || name == "store" || name == "background" || name == "previous_response_id";
  }

  Read read_of_response(std::string_view name, MemberPlace& place, ondemand::value value) {
    ondemand::json_type type{};
    if (const auto failure = value.type().get(type)) return std::unexpected(not_json(failure));
    if (name == "store" || name == "background") {
      place.value = span_of(trimmed(value.raw_json_token()));
      bool wanted = false;
      const auto read = read_bool(name, value, wanted);
      if (!read || !wanted) return read;
      return std::unexpected(wrong(name, "false: responses are not stored here"));
    }
    if (name == "input" && type == ondemand::json_type::array) return read_messages(name, place, value);
    std::string_view raw;
    if (const auto failure = raw_json(value).get(raw)) return std::unexpected(not_json(failure));
    place.value = span_of(raw);
    if (name == "previous_response_id") {
      if (type == ondemand::json_type::null) return {};
      return std::unexpected(wrong(name, "none: responses are not stored here"));
    }
    if (type != ondemand::json_type::string) return std::unexpected(wrong(name, "a string or an array"));
    body_.prompt.add(PromptPart::User, raw.size());
    body_.prompt_parts.push_back(place.value);
    return {};
  }

  void add_to_opening(PromptPart part, std::string_view raw) {
    body_.prompt.add(part, raw.size());
    body_.prompt_parts.push_back(span_of(raw));
    body_.opening_parts.push_back(span_of(raw));
  }

  Read skip(ondemand::value value) {
    std::string_view skipped;
    if (const auto failure = raw_json(value).get(skipped)) return std::unexpected(not_json(failure));
    return {};
  }

  Read read_model(ondemand::value value) {
    std::string_view model;
    if (value.get_string().get(model)) return std::unexpected(wrong("model", "a string"));
    body_.model = model;
    return {};
  }

  Read read_bool(std::string_view name, ondemand::value value, bool& out) {
    bool is_null = false;
    if (!value.is_null().get(is_null) && is_null) return {};
    if (value.get_bool().get(out)) return std::unexpected(wrong(name, "true or false"));
    return {};
  }

  Read read_count(std::string_view name, ondemand::value value, std::int64_t& out) {
    bool is_null = false;
    if (!value.is_null().get(is_null) && is_null) return {};
    if (value.get_int64().get(out) || out < 1 || out > kMaxSequences) {
      return std::unexpected(wrong(name, "an integer 1..65536"));
    }
    return {};
  }

  Read read_stream_options(MemberPlace& place, ondemand::value value) {
    StreamOptions options;
    ondemand::json_type type{};
    if (const auto failure = value.type().get(type)) return std::unexpected(not_json(failure));
    if (type == ondemand::json_type::null) {
      options.span = place.value = span_of(trimmed(value.raw_json_token()));
      body_.stream_options = options;
      return {};
    }
    ondemand::object object;
    std::string_view raw;
    bool has_members = false;
    if (value.get_object().get(object)) return std::unexpected(wrong("stream_options", "an object"));
    if (const auto failure = object.raw_json().get(raw)) return std::unexpected(not_json(failure));
    raw = trimmed(raw);
    if (const auto failure = object.reset().get(has_members)) return std::unexpected(not_json(failure));
    options.span = place.value = span_of(raw);
    options.is_object = true;
    options.is_empty = !has_members;
    for (auto field : object) {
      std::string_view key;
      if (const auto failure = field.unescaped_key().get(key)) return std::unexpected(not_json(failure));
      const bool include = key == "include_usage";
      if (!include && key != "continuous_usage_stats") {
        const auto skipped = skip(field.value());
        if (!skipped) return skipped;
        continue;
      }
      auto& wanted = include ? options.include_usage : options.continuous_usage;
      if (wanted) return std::unexpected(wrong(key, "it once, but the body has it twice"));
      ondemand::value usage;
      if (const auto failure = field.value().get(usage)) return std::unexpected(not_json(failure));
      (include ? options.include_usage_span : options.continuous_usage_span) = span_of(trimmed(usage.raw_json_token()));
      wanted = false;
      const auto read = read_bool(key, usage, *wanted);
      if (!read) return read;
    }
    body_.stream_options = options;
    return {};
  }

  Read read_messages(std::string_view name, MemberPlace& place, ondemand::value value) {
    ondemand::array messages;
    std::string_view raw;
    if (value.get_array().get(messages) || messages.raw_json().get(raw)) {
      return std::unexpected(wrong(name, "an array"));
    }
    place.value = span_of(trimmed(raw));
    if (const auto failure = messages.reset().error()) return std::unexpected(not_json(failure));
    std::string_view opening;
    if (const auto failure = add_messages(messages, body_.prompt, opening)) return std::unexpected(not_json(failure));
    body_.prompt_parts.push_back(place.value);
    if (!opening.empty()) body_.opening_parts.push_back(span_of(opening));
    return {};
  }

  // A string, a list of strings, a list of token ids, or a list of lists of token ids.
  Read read_prompt(MemberPlace& place, ondemand::value value) {
    ondemand::json_type type{};
    if (const auto failure = value.type().get(type)) return std::unexpected(not_json(failure));
    if (type == ondemand::json_type::string) {
      place.value = span_of(trimmed(value.raw_json_token()));
      body_.prompt_parts.push_back(place.value);
      return count_text(value);
    }
    if (type != ondemand::json_type::array) return std::unexpected(wrong("prompt", "a string or an array"));
    ondemand::array elements;
    std::string_view raw;
    if (const auto failure = value.get_array().get(elements)) return std::unexpected(not_json(failure));
    if (const auto failure = elements.raw_json().get(raw)) return std::unexpected(not_json(failure));
    if (const auto failure = elements.reset().error()) return std::unexpected(not_json(failure));
    body_.prompt_parts.push_back(span_of(trimmed(raw)));
    std::int64_t ids = 0;
    prompts_ = 0;
    for (auto element : elements) {
      ondemand::json_type inner{};
      if (const auto failure = element.type().get(inner)) return std::unexpected(not_json(failure));
      ++prompts_;
      if (inner == ondemand::json_type::number) {
        ++ids;
        const auto skipped = skip(element.value_unsafe());
        if (!skipped) return skipped;
      } else if (inner == ondemand::json_type::string) {
        const auto counted = count_text(element.value_unsafe());
        if (!counted) return counted;
      } else if (inner == ondemand::json_type::array) {
        std::size_t length = 0;
        if (const auto failure = element.value_unsafe().count_elements().get(length)) {
          return std::unexpected(not_json(failure));
        }
        nested_ids_ += static_cast<std::int64_t>(length);
        const auto skipped = skip(element.value_unsafe());
        if (!skipped) return skipped;
      } else {
        return std::unexpected(wrong("prompt", "a string, a list of strings or lists of token ids"));
      }
    }
    if (prompts_ == 0) return std::unexpected(wrong("prompt", "at least one prompt"));
    if (ids > 0) {
      if (ids != prompts_) return std::unexpected(wrong("prompt", "a list of one kind"));
      prompts_ = 1;
      nested_ids_ = ids;
    }
    return {};
  }

  Read count_text(ondemand::value value) {
    body_.prompt.add(PromptPart::Plain, trimmed(value.raw_json_token()).size() - 2);  // without its quotes
    return skip(value);
  }

  std::expected<GenerationBody, BodyError> finish() {
    if (!body_.place(Member::Model) && kind_ != GenerationKind::Other) {
      return std::unexpected(BodyError{"'model' is missing", "model"});
    }
    const std::string_view text{text_.data(), text_.size()};
    const std::size_t open = text.find('{');
    body_.object = {open, text.rfind('}') + 1 - open};
    const std::int64_t sequences = prompts_ * std::max(n_, best_of_);
    if (sequences > kMaxSequences) return std::unexpected(wrong("n", "at most 65536 answers in all"));
    body_.sequences = static_cast<std::int32_t>(sequences);
    body_.prompts = static_cast<std::int32_t>(prompts_);
    body_.prompt.amounts[static_cast<std::size_t>(PromptPart::Plain)] /= static_cast<std::size_t>(prompts_);
    if (nested_ids_ > 0) body_.prompt_tokens = nested_ids_ / prompts_;
    body_.output_limit = limit_of_answers();
    return std::move(body_);
  }

  // A value that is no limit is for the engine to refuse. The newer member goes before the older one, as in engines.
  std::optional<std::int64_t> limit_of_answers() const {
    for (const Member member : {Member::MaxCompletionTokens, Member::MaxTokens, Member::MaxOutputTokens}) {
      const auto& place = body_.place(member);
      if (!place) continue;
      const char* begin = text_.data() + place->value.offset;
      const char* end = begin + place->value.length;
      std::int64_t limit = 0;
      const auto parsed = std::from_chars(begin, end, limit);
      if (parsed.ec == std::errc{} && parsed.ptr == end && limit > 0) return limit;
    }
    return std::nullopt;
  }

  Span span_of(std::string_view part) const {
    return {static_cast<std::size_t>(part.data() - text_.data()), part.size()};
  }

  GenerationKind kind_;
  Trust trust_;
  simdjson::padded_string text_;
  GenerationBody body_;
  std::int64_t n_ = 1;
  std::int64_t best_of_ = 1;
  std::int64_t prompts_ = 1;
  std::int64_t nested_ids_ = 0;
};

}  // namespace

std::expected<GenerationBody, BodyError> read_generation_body(std::string_view body, GenerationKind kind, Trust trust) {
  return BodyReader{body, kind, trust}.read();
}

BodyError refused_member(const std::string& name) {
  return {"'" + name + "' may not be sent by clients", name};
}

void Splice::replace(Span span, std::string text) {
  const auto place =
      std::ranges::upper_bound(edits_, span.offset, {}, [](const Edit& edit) { return edit.span.offset; });
  edits_.insert(place, {span, std::move(text)});
}

std::string Splice::apply() const {
  std::string out;
  std::size_t at = 0;
  for (const Edit& edit : edits_) {
    out.append(original_.substr(at, edit.span.offset - at)).append(edit.text);
    at = edit.span.offset + edit.span.length;
  }
  return out.append(original_.substr(at));
}

std::string_view name_of(Member member) {
  return kReadMembers[static_cast<std::size_t>(member)];
}

void BodyEdit::set(Member member, std::string value) {
  if (const auto& place = body_.place(member)) {
    splice_.replace(place->value, std::move(value));
  } else {
    add(name_of(member), value);
  }
}

void BodyEdit::set_if_present(Member member, std::string value) {
  if (const auto& place = body_.place(member)) splice_.replace(place->value, std::move(value));
}

void BodyEdit::drop(Member member) {
  if (const auto& place = body_.place(member)) dropped_.push_back(place->index);
}

void BodyEdit::add(std::string_view name, std::string_view value) {
  if (!added_.empty()) added_.push_back(',');
  added_.append("\"").append(name).append("\":").append(value);
}

void BodyEdit::ask_for_usage(bool continuous) {
  static const StreamOptions kNone;
  const StreamOptions& options = body_.stream_options ? *body_.stream_options : kNone;
  std::string more;  // members that are not there yet
  set_option(more, "include_usage", options.include_usage, options.include_usage_span);
  if (continuous) set_option(more, "continuous_usage_stats", options.continuous_usage, options.continuous_usage_span);
  if (more.empty()) return;
  if (!options.is_object) {
    set(Member::StreamOptions, "{" + more + "}");
  } else {
    splice_.insert(options.span.offset + 1, more + (options.is_empty ? "" : ","));
  }
}

void BodyEdit::set_option(std::string& more, std::string_view name, const std::optional<bool>& value, Span span) {
  if (!value) {
    more.append(more.empty() ? "\"" : ",\"").append(name).append("\":true");
  } else if (!*value) {
    splice_.replace(span, "true");
  }
}

// A member goes with the comma after it; the last ones, which have none, with the comma before them.
std::string BodyEdit::apply() && {
  std::ranges::sort(dropped_);
  std::size_t kept = body_.member_begins.size();  // those from here on are left out
  while (!dropped_.empty() && dropped_.back() == kept - 1) {
    --kept;
    dropped_.pop_back();
  }
  const std::size_t close = body_.object.offset + body_.object.length - 1;
  for (const std::size_t index : dropped_) leave_out(body_.member_begins[index], body_.member_begins[index + 1]);
  if (kept < body_.member_begins.size()) {
    // The model stays at least, so there is a comma.
    leave_out(splice_.original().rfind(',', body_.member_begins[kept]), close);
  }
  if (!added_.empty()) splice_.insert(close, "," + added_);
  return splice_.apply();
}

void BodyEdit::leave_out(std::size_t begin, std::size_t end) {
  splice_.replace({begin, end - begin}, {});
}

}  // namespace balanceroute::proxy
