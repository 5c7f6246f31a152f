// event_fuzz.cpp - any bytes are an event of some kind; counts are never negative.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "proxy/stream_event.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto event = balanceroute::proxy::read_stream_event(text);
  require(event.tokens >= 0 && event.finished >= 0);
  require(!event.usage_only || event.usage);
  (void)balanceroute::proxy::read_usage(text);
  return 0;
}
