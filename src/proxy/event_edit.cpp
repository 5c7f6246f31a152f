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

  void read_usage(ondemand::value value) {
    ondemand::object usage;
    std::string_view raw;
    if (value.get_object().get(usage) || usage.raw_json().get(raw)) return;
    places_.usage = span_of(raw);
    if (usage.reset().error()) return;
    read(usage, [this](std::string_view name, ondemand::value count) {
      if (name == "prompt_tokens") note(places_.prompt_tokens, count);
      if (name == "completion_tokens") note(places_.completion_tokens, count);
      if (name == "total_tokens") note(places_.total_tokens, count);
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

}  // namespace

std::string without_usage(std::string_view event, std::string_view json) {
  constexpr std::string_view kName = "\"usage\"";
  constexpr std::string_view kBlanks = " \t\r\n";
  const auto usage = places_in(json).usage;
  const std::size_t name = usage ? json.rfind(kName, usage->offset) : std::string_view::npos;
  if (name == std::string_view::npos || name == 0) return std::string{event};
  std::string_view between = json.substr(name + kName.size(), usage->offset - name - kName.size());
  between.remove_prefix(std::min(between.find_first_not_of(kBlanks), between.size()));
  between = between.substr(0, between.find_last_not_of(kBlanks) + 1);
  if (between != ":") return std::string{event};  // its name is spelled with escapes
  std::size_t begin = json.find_last_not_of(kBlanks, name - 1);
  std::size_t end = usage->offset + usage->length;
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

EventPlaces places_in(std::string_view json) {
  return PlaceFinder{}.find(json);
}

}  // namespace balanceroute::proxy
