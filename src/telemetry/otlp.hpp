// otlp.hpp - spans, and the body that carries them to a collector: OTLP/HTTP with JSON
// (https://opentelemetry.io/docs/specs/otlp, opentelemetry/proto/collector/trace/v1).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "telemetry/trace_context.hpp"

namespace balanceroute::telemetry {

using UnixNanoseconds = std::chrono::sys_time<std::chrono::nanoseconds>;

// With the numbers of the protocol.
enum class SpanKind : std::uint8_t { internal = 1, server = 2, client = 3 };

// Span is a piece of work with its begin and end.
struct Span {
  using Value = std::variant<std::string, std::int64_t, double>;

  TraceContext context{};          // its own
  std::optional<SpanId> parent{};  // none: the first of its trace
  SpanKind kind = SpanKind::internal;
  std::string name;
  UnixNanoseconds begin{};
  UnixNanoseconds end{};
  std::vector<std::pair<std::string_view, Value>> attributes{};  // keys are literals
  std::optional<std::string> error{};                            // it failed, and why
};

// One ExportTraceServiceRequest. 64-bit numbers are strings and ids hexadecimal, as the protocol has them in JSON.
std::string to_otlp_json(std::span<const Span> spans, std::string_view service_name, std::string_view version);

}  // namespace balanceroute::telemetry
