#include "proxy/event_edit.hpp"

#include <simdjson.h>

#include <algorithm>

namespace balanceroute::proxy {

namespace {

namespace ondemand = simdjson::ondemand;

// One pass over a chunk; what is not as expected is not found.
class PlaceFinder {
 public:
  EventPlaces find(std::string_view json) {
    const simdjson::padded_string text{json};
    text_ = text.data();
    thread_local ondemand::parser parser;
    ondemand::document document;
    ondemand::object root;
    if (parser.iterate(text).get(document) || document.get_object().get(root)) return {};
    read(root, [this](std::string_view name, ondemand::value value) {
      if (name == "id") note(places_.id, value);
      if (name == "usage") read_usage(value);
      if (name == "kv_transfer_params") {
        ondemand::object object;
        places_.kv_transfer_params = span_of_object(value, object);
      }
      if (name == "choices") read_first_choice(value);
    });
    return places_;
  }

 private:
  template <class Take>
  static void read(ondemand::object& object, Take take) {
    for (auto result : object) {
      ondemand::field field;
      std::string_view name;
      if (std::move(result).get(field) || field.unescaped_key().get(name)) return;
      take(name, field.value());
    }
  }

  // Strings and numbers only.
  void note(std::optional<Span>& place, ondemand::value value) const {
    ondemand::json_type type{};
    if (value.type().get(type) || type == ondemand::json_type::object || type == ondemand::json_type::array) return;
    place = span_of(value.raw_json_token());
  }

  // simdjson's raw texts end where the next token begins.
  [[nodiscard]] Span span_of(std::string_view raw) const {
    return {static_cast<std::size_t>(raw.data() - text_), raw.find_last_not_of(" \t\r\n") + 1};
  }

  // The whole of an object, which is left at its beginning; nothing if the value is none.
  [[nodiscard]] std::optional<Span> span_of_object(ondemand::value& value, ondemand::object& object) const {
    std::string_view raw;
    if (value.get_object().get(object) || object.raw_json().get(raw) || object.reset().error()) return std::nullopt;
    return span_of(raw);
  }

  void read_usage(ondemand::value value) {
    ondemand::object usage;
    places_.usage = span_of_object(value, usage);
    if (!places_.usage) return;
    read(usage, [this](std::string_view name, ondemand::value count) {
      if (name == "prompt_tokens") note(places_.prompt_tokens, count);
      if (name == "completion_tokens") note(places_.completion_tokens, count);
      if (name == "total_tokens") note(places_.total_tokens, count);
      if (name == "prompt_tokens_details") read_details(count);
    });
  }

  void read_details(ondemand::value value) {
    if (value.is_null()) {
      note(places_.details, value);
      return;
    }
    ondemand::object details;
    places_.details = span_of_object(value, details);
    if (!places_.details) return;
    read(details, [this](std::string_view name, ondemand::value count) {
      if (name == "cached_tokens") note(places_.cached_tokens, count);
    });
  }

  void read_first_choice(ondemand::value value) {
    ondemand::array choices;
    if (value.get_array().get(choices)) return;
    for (auto element : choices) {
      ondemand::object choice;
      if (element.get_object().get(choice)) return;
      read(choice, [this](std::string_view name, ondemand::value member) { read_choice_member(name, member); });
      break;
    }
  }

  void read_choice_member(std::string_view name, ondemand::value member) {
    if (name == "text") note(places_.text, member);
    if (name == "finish_reason") note(places_.finish_reason, member);
    if (name == "stop_reason") note(places_.stop_reason, member);
    ondemand::object message;
    if ((name != "delta" && name != "message") || member.get_object().get(message)) return;
    read(message, [this](std::string_view part, ondemand::value content) {
      if (part == "content") note(places_.text, content);
    });
  }

  const char* text_ = nullptr;
  EventPlaces places_;
};

// `name` with its quotes; the value is where `place` says.
std::string without_member(std::string_view event, std::string_view json, std::string_view name,
                           const std::optional<Span>& place) {
  constexpr std::string_view kBlanks = " \t\r\n";
  const std::size_t at = place ? json.rfind(name, place->offset) : std::string_view::npos;
  if (at == std::string_view::npos || at == 0) return std::string{event};
  std::string_view between = json.substr(at + name.size(), place->offset - at - name.size());
  between.remove_prefix(std::min(between.find_first_not_of(kBlanks), between.size()));
  between = between.substr(0, between.find_last_not_of(kBlanks) + 1);
  if (between != ":") return std::string{event};  // its name is spelled with escapes
  std::size_t begin = json.find_last_not_of(kBlanks, at - 1);
  std::size_t end = place->offset + place->length;
  const std::size_t next = json.find_first_not_of(kBlanks, end);
  if (begin == std::string_view::npos || next == std::string_view::npos) return std::string{event};  // no JSON
  if (json[begin] != ',') {  // the first member, which goes with the comma after it
    ++begin;
    if (json[next] == ',') end = next + 1;
  }
  Splice splice{event};
  splice.replace({begin + static_cast<std::size_t>(json.data() - event.data()), end - begin}, {});
  return splice.apply();
}

// An object, or the null in the place of one, with one member more.
std::string with_first_member(std::string_view object, const std::string& member) {
  const bool empty = object.find('"') == std::string_view::npos;
  return "{" + member + (empty ? "}" : "," + std::string{object.substr(1)});
}

}  // namespace

std::string without_usage(std::string_view event, std::string_view json) {
  return without_member(event, json, "\"usage\"", places_in(json).usage);
}

std::string without_transfer(std::string_view json) {
  constexpr std::string_view kName = "\"kv_transfer_params\"";
  if (!json.contains(kName)) return std::string{json};
  return without_member(json, json, kName, places_in(json).kv_transfer_params);
}

std::string with_cached(std::string_view event, std::string_view json, const CachedPrompt& cached) {
  const EventPlaces places = places_in(json);
  const std::string tokens = std::to_string(cached.told.value_or(0));
  const auto shift = static_cast<std::size_t>(json.data() - event.data());
  Splice splice{event};
  if (places.cached_tokens) {
    splice.replace({places.cached_tokens->offset + shift, places.cached_tokens->length}, tokens);
  } else if (cached.told && places.usage) {
    const std::string told = R"("cached_tokens":)" + tokens;
    const Span span = places.details ? *places.details : *places.usage;
    const std::string_view object = json.substr(span.offset, span.length);
    splice.replace({span.offset + shift, span.length},
                   with_first_member(object, places.details ? told : R"("prompt_tokens_details":{)" + told + "}"));
  }
  return splice.apply();
}

EventPlaces places_in(std::string_view json) {
  return PlaceFinder{}.find(json);
}

}  // namespace balanceroute::proxy
