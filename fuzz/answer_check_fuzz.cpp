// answer_check_fuzz.cpp - a client survives any answer: events (one a line here) or one body.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "replay/answer_check.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace balanceroute;
  std::string_view text{reinterpret_cast<const char*>(data), size};
  replay::AnswerCheck whole;
  if (const auto taken = whole.take_whole(text); !taken && taken.error().text.empty()) std::abort();
  replay::AnswerCheck check;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const auto taken = check.take_event(text.substr(0, end));
    if (!taken) {
      if (taken.error().text.empty()) std::abort();
      return 0;  // a reader stops at the first fault
    }
    if (check.tokens() < Tokens{0}) std::abort();
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  const auto ended = check.end(Tokens{3});
  if (!ended && ended.error().text.empty()) std::abort();
  return 0;
}
