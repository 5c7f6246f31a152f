// trace_context.hpp - where a request stands in a distributed trace: the `traceparent` header of W3C Trace Context
// (https://www.w3.org/TR/trace-context, version 00).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace balanceroute::telemetry {

using TraceId = std::array<std::uint8_t, 16>;
using SpanId = std::array<std::uint8_t, 8>;

// TraceContext names one span of one trace; neither id is all zeros.
struct TraceContext {
  TraceId trace{};
  SpanId span{};
  bool sampled = true;  // whoever takes part is asked to record it

  // Of the same trace, with a new span.
  [[nodiscard]] TraceContext child() const;
  // As in a header: "00-<trace>-<span>-01".
  [[nodiscard]] std::string to_string() const;
};

// The first span of a new trace, with random ids.
TraceContext new_trace(bool sampled);
// What a client's header says; nothing if it is malformed, or of the version that is forbidden. Of a later version what
// version 00 has is read.
std::optional<TraceContext> parse_traceparent(std::string_view header);

// Lower case hexadecimal.
std::string to_hex(const TraceId& id);
std::string to_hex(const SpanId& id);

}  // namespace balanceroute::telemetry
