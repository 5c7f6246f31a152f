// request_trace.hpp - the spans of one request, and the headers by which engines take part in its trace.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "net/clock.hpp"
#include "net/http.hpp"
#include "proxy/span_exporter.hpp"
#include "telemetry/otlp.hpp"

namespace balanceroute::proxy {

// A request that the router sends to an engine for a client's.
enum class Leg : std::uint8_t { prefill, decode, whole };

// RequestTrace stands for the router's part in a trace: a span of the whole request, one for each leg and one for the
// wait in the pool. It goes on with the client's trace, or begins one; it keeps legs only where they will be exported.
//   Threads  one at a time.
class RequestTrace {
 public:
  RequestTrace(SpanExporter& exporter, const net::Clock& clock, const net::HeaderList& client);

  // Of the trace, in hexadecimal.
  [[nodiscard]] std::string id() const { return telemetry::to_hex(context_.trace); }

  // A leg begins: its headers name a span of its own in place of the client's.
  void begin_leg(Leg leg, std::string engine, net::HeaderList& headers);
  // The latest of that kind is over.
  void end_leg(Leg leg);

  struct Summary {
    net::TimePoint arrived;
    std::optional<std::pair<net::TimePoint, net::TimePoint>> pool_wait;
    net::TimePoint first_token = net::kNever;
    std::string name;  // of the request's span
    std::vector<std::pair<std::string_view, telemetry::Span::Value>> attributes;
    std::optional<std::string> error;
  };
  // Whether finish() does anything.
  [[nodiscard]] bool recorded() const { return exporter_.on() && context_.sampled; }
  // The request is over. A leg that nobody saw the end of ends now; one of prefill at the first token.
  void finish(Summary summary);

 private:
  struct LegSpan {
    Leg leg;
    std::string engine;
    telemetry::TraceContext context;
    net::TimePoint begin;
    net::TimePoint end = net::kNever;
  };

  telemetry::Span leg_span(const LegSpan& leg, net::TimePoint open_end) const;
  [[nodiscard]] telemetry::UnixNanoseconds wall(net::TimePoint time) const;

  SpanExporter& exporter_;
  const net::Clock& clock_;
  std::optional<telemetry::TraceContext> parent_;
  telemetry::TraceContext context_;
  std::vector<LegSpan> legs_;
  std::chrono::nanoseconds wall_offset_{};  // of the wall clock before the other, at the end
};

}  // namespace balanceroute::proxy
