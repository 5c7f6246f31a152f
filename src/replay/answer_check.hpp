// answer_check.hpp - reads the answer to one request and tells whether it is whole.
//
// An emulated engine numbers its tokens (" t1", " t2", ...). Where an answer begins like that, every token is checked:
// a lost, doubled or misplaced one is a fault. Answers of real models are taken as they are.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <string_view>

#include "core/units.hpp"
#include "replay/fault.hpp"

namespace balanceroute::replay {

// TokenNumbers follows the numbers in the text of one answer.
class TokenNumbers {
 public:
  [[nodiscard]] std::expected<void, Fault> take(std::string_view text);
  // At the end of an answer that should have had `expected` tokens.
  [[nodiscard]] std::expected<void, Fault> end(Tokens expected) const;

 private:
  enum class Kind { unknown, numbered, plain };

  Kind kind_ = Kind::unknown;
  std::int64_t last_ = 0;
};

// AnswerCheck takes the parts of one answer to a request for one sequence.
//   Use  take_event() for the data of each server-sent event, or take_whole() for the body of an answer in one piece;
//        then end().
class AnswerCheck {
 public:
  // Whether the event had a token.
  [[nodiscard]] std::expected<bool, Fault> take_event(std::string_view data);
  [[nodiscard]] std::expected<void, Fault> take_whole(std::string_view body);
  // A fault when the answer broke off, or lacks numbered tokens.
  [[nodiscard]] std::expected<void, Fault> end(Tokens expected) const;

  // What usage says; before that, or without it, the events that had text.
  [[nodiscard]] Tokens tokens() const { return usage_ > Tokens{0} ? usage_ : counted_; }
  // The prompt as the server counted it; none when it does not say.
  [[nodiscard]] std::optional<Tokens> prompt() const { return prompt_; }

 private:
  TokenNumbers numbers_;
  Tokens usage_{0};
  Tokens counted_{0};
  std::optional<Tokens> prompt_;
  bool has_reason_ = false;
  bool complete_ = false;
};

}  // namespace balanceroute::replay
