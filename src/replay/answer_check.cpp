#include "replay/answer_check.hpp"

#include <simdjson.h>

#include <charconv>
#include <string>
#include <utility>

namespace balanceroute::replay {
namespace {

namespace dom = simdjson::dom;

constexpr std::size_t kShownBytes = 80;

std::unexpected<Fault> fault(std::string text, FaultKind kind = FaultKind::bad_answer) {
  return std::unexpected{Fault{kind, std::move(text)}};
}

std::string shown(std::string_view text) {
  return "\"" + std::string{text.substr(0, kShownBytes)} + "\"";
}

// Takes " t<number>" off the front of `text`.
std::optional<std::int64_t> take_number(std::string_view& text) {
  constexpr std::string_view kMark = " t";
  if (!text.starts_with(kMark)) return std::nullopt;
  std::int64_t number = 0;
  const auto [end, problem] = std::from_chars(text.data() + kMark.size(), text.data() + text.size(), number);
  if (problem != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return number;
}

// The text that a choice carries, of a completion or a chat answer, streamed or whole.
std::string_view text_of(dom::element choice) {
  std::string_view text;
  if (choice["text"].get_string().get(text) == simdjson::SUCCESS) return text;
  if (choice["delta"]["content"].get_string().get(text) == simdjson::SUCCESS) return text;
  if (choice["message"]["content"].get_string().get(text) == simdjson::SUCCESS) return text;
  return {};
}

std::expected<dom::element, Fault> parse(dom::parser& parser, std::string_view json) {
  dom::element root;
  if (parser.parse(json.data(), json.size()).get(root) != simdjson::SUCCESS || !root.is_object()) {
    return fault("not a JSON object: " + shown(json));
  }
  if (dom::element error; root["error"].get(error) == simdjson::SUCCESS && !error.is_null()) {
    return fault("error in the answer: " + shown(simdjson::minify(error)), FaultKind::error_in_answer);
  }
  return root;
}

}  // namespace

std::expected<void, Fault> TokenNumbers::take(std::string_view text) {
  if (kind_ == Kind::plain || text.empty()) return {};
  while (!text.empty()) {
    const auto number = take_number(text);
    if (kind_ == Kind::unknown) kind_ = number ? Kind::numbered : Kind::plain;
    if (kind_ == Kind::plain) return {};
    if (number != last_ + 1) {
      return fault("token t" + std::to_string(last_) + " is followed by " +
                   (number ? "t" + std::to_string(*number) : shown(text)));
    }
    last_ = *number;
  }
  return {};
}

std::expected<void, Fault> TokenNumbers::end(Tokens expected) const {
  if (kind_ != Kind::numbered || last_ == expected.count()) return {};
  return fault("the answer ended at token t" + std::to_string(last_) + ", expected t" +
               std::to_string(expected.count()));
}

std::expected<bool, Fault> AnswerCheck::take_event(std::string_view data) {
  if (data == "[DONE]") {
    complete_ = true;
    return false;
  }
  if (complete_) return fault("an event follows [DONE]: " + shown(data));
  thread_local dom::parser parser;
  const auto root = parse(parser, data);
  if (!root) return std::unexpected{root.error()};
  std::int64_t count = 0;
  if ((*root)["usage"]["completion_tokens"].get_int64().get(count) == simdjson::SUCCESS) usage_ = Tokens{count};
  if ((*root)["usage"]["prompt_tokens"].get_int64().get(count) == simdjson::SUCCESS) prompt_ = Tokens{count};
  dom::element choice;
  if ((*root)["choices"].at(0).get(choice) != simdjson::SUCCESS) return false;
  if (dom::element reason; choice["finish_reason"].get(reason) == simdjson::SUCCESS && !reason.is_null()) {
    has_reason_ = true;
  }
  const auto text = text_of(choice);
  if (text.empty()) return false;
  counted_ += Tokens{1};
  if (const auto taken = numbers_.take(text); !taken) return std::unexpected{taken.error()};
  return true;
}

std::expected<void, Fault> AnswerCheck::take_whole(std::string_view body) {
  // A whole answer has the members of an event, and is its own end.
  const auto taken = take_event(body);
  if (!taken) return std::unexpected{taken.error()};
  complete_ = true;
  return {};
}

std::expected<void, Fault> AnswerCheck::end(Tokens expected) const {
  if (!complete_) return fault("the stream ended without [DONE]");
  if (!has_reason_) return fault("the answer has no finish_reason");
  return numbers_.end(expected);
}

}  // namespace balanceroute::replay
