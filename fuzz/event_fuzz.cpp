// event_fuzz.cpp - any bytes are an event of some kind: counts are never negative, and edits leave JSON what it was.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "proxy/continuation.hpp"
#include "proxy/event_edit.hpp"
#include "proxy/prefill_leg.hpp"
#include "proxy/stream_event.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto event = balanceroute::proxy::read_stream_event(text);
  require(event.tokens >= 0 && event.finished >= 0);
  require(!event.usage_only || event.usage);
  const auto whole = balanceroute::proxy::read_whole_answer(text);
  require(whole.tokens >= 0 && whole.finished >= 0);
  (void)balanceroute::proxy::object_member(text, "kv_transfer_params");
  (void)balanceroute::proxy::stated_lease(text, {});

  const balanceroute::proxy::Continuation so_far{
      .text = "a\"b", .tokens = 3, .prompt_tokens = 5, .answer_id = "\"id\"", .times = 1};
  const bool valid = nlohmann::json::accept(text);
  for (const std::string& edited :
       {balanceroute::proxy::without_usage(text, text), balanceroute::proxy::as_part_of(text, text, so_far),
        balanceroute::proxy::as_whole_of(text, so_far), balanceroute::proxy::without_end(text, text),
        balanceroute::proxy::without_transfer(text), balanceroute::proxy::with_cached(text, text, {.told = 5}),
        balanceroute::proxy::with_cached(text, text, {})}) {
    require(!valid || nlohmann::json::accept(edited));
  }
  return 0;
}
