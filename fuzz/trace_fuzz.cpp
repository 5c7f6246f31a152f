// trace_fuzz.cpp - any bytes are a trace or a refusal; what is taken keeps the promises of trace.hpp.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/request.hpp"
#include "require.hpp"
#include "trace/reader.hpp"
#include "trace/statistics.hpp"

namespace {

using namespace balanceroute;

void check(const trace::Trace& trace) {
  require(!trace.requests.empty());
  auto previous = trace.requests.front().arrival;
  require(previous.count() == 0);
  for (const auto& request : trace.requests) {
    require(request.arrival >= previous);
    require(request.prompt >= Tokens{1} && request.prompt <= kMaxTokens);
    require(request.output >= Tokens{1} && request.output <= kMaxTokens);
    previous = request.arrival;
  }
  require(trace::length_statistics(trace.requests).busy_slot_weight >= 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto strict = trace::parse_trace(text, "input");
  const auto lenient = trace::parse_trace(text, "input", {.skip_bad_rows = true});
  if (strict) {
    check(*strict);
    require(lenient && lenient->requests == strict->requests && lenient->skipped_rows == 0);
  } else {
    require(!strict.error().empty());
  }
  if (lenient) check(*lenient);
  return 0;
}
