// answer_text.hpp - the text of tokens, for those who word answers.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/units.hpp"

namespace balanceroute::emulator {

// " t17", or the same text for all.
inline void append_token_text(std::string& out, Tokens number, bool numbered) {
  out += " t";
  out += numbered ? std::to_string(number.count()) : "oken";
}

inline void append_token_texts(std::string& out, Tokens first, Tokens last, bool numbered) {
  for (auto number = first; number <= last; number += Tokens{1}) append_token_text(out, number, numbered);
}

// Of the call of a function: {"text":" t1 t2"}.
inline constexpr std::string_view kCallArgumentsBegin = R"({"text":")";
inline constexpr std::string_view kCallArgumentsEnd = R"("})";

// What came from a client may be no UTF-8.
inline std::string json_text(const nlohmann::ordered_json& value) {
  return value.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

// One server-sent event with a name.
inline void append_named_event(std::string& out, std::string_view name, const nlohmann::ordered_json& data) {
  out.append("event: ").append(name).append("\ndata: ").append(json_text(data)).append("\n\n");
}

}  // namespace balanceroute::emulator
