#include "proxy/request_trace.hpp"

#include <algorithm>
#include <chrono>

namespace balanceroute::proxy {

namespace {

constexpr std::string_view kTraceparent = "traceparent";
constexpr std::string_view kTracestate = "tracestate";

// A client that sends two has sent none (W3C Trace Context 3.2).
std::optional<telemetry::TraceContext> sent_by(const net::HeaderList& client) {
  if (client.count(kTraceparent) != 1) return std::nullopt;
  return telemetry::parse_traceparent(*client.find(kTraceparent));
}

std::string name_of(Leg leg) {
  switch (leg) {
    case Leg::prefill:
      return "prefill";
    case Leg::decode:
      return "decode";
    case Leg::whole:
      return "forward";
  }
  return {};
}

}  // namespace

RequestTrace::RequestTrace(SpanExporter& exporter, const net::Clock& clock, const net::HeaderList& client)
    : exporter_{exporter}, clock_{clock}, parent_{sent_by(client)}, context_{exporter.context_of(parent_)} {}

void RequestTrace::begin_leg(Leg leg, std::string engine, net::HeaderList& headers) {
  const telemetry::TraceContext context = context_.child();
  headers.remove(kTraceparent);
  if (!parent_) headers.remove(kTracestate);  // it belongs to a trace that is not gone on with
  headers.add(std::string{kTraceparent}, context.to_string());
  if (!recorded()) return;
  end_leg(leg);
  legs_.push_back({.leg = leg, .engine = std::move(engine), .context = context, .begin = clock_.now()});
}

void RequestTrace::end_leg(Leg leg) {
  const auto open =
      std::ranges::find_if(legs_, [leg](const LegSpan& one) { return one.leg == leg && one.end == net::kNever; });
  if (open != legs_.end()) open->end = clock_.now();
}

void RequestTrace::finish(Summary summary) {
  if (!recorded()) return;
  const net::TimePoint now = clock_.now();
  wall_offset_ = std::chrono::time_point_cast<std::chrono::nanoseconds>(std::chrono::system_clock::now()) -
                 telemetry::UnixNanoseconds{now.time_since_epoch()};
  std::vector<telemetry::Span> spans;
  telemetry::Span& whole = spans.emplace_back(telemetry::Span{.context = context_,
                                                              .kind = telemetry::SpanKind::server,
                                                              .name = std::move(summary.name),
                                                              .begin = wall(summary.arrived),
                                                              .end = wall(now),
                                                              .attributes = std::move(summary.attributes),
                                                              .error = std::move(summary.error)});
  if (parent_) whole.parent = parent_->span;
  if (summary.pool_wait) {
    spans.push_back({.context = context_.child(),
                     .parent = context_.span,
                     .name = "pool wait",
                     .begin = wall(summary.pool_wait->first),
                     .end = wall(summary.pool_wait->second)});
  }
  for (const LegSpan& leg : legs_) {
    spans.push_back(leg_span(leg, leg.leg == Leg::prefill ? std::min(now, summary.first_token) : now));
  }
  exporter_.add(std::move(spans));
}

telemetry::Span RequestTrace::leg_span(const LegSpan& leg, net::TimePoint open_end) const {
  return {.context = leg.context,
          .parent = context_.span,
          .kind = telemetry::SpanKind::client,
          .name = name_of(leg.leg),
          .begin = wall(leg.begin),
          .end = wall(leg.end == net::kNever ? std::max(open_end, leg.begin) : leg.end),
          .attributes = {{"server.address", leg.engine}}};
}

telemetry::UnixNanoseconds RequestTrace::wall(net::TimePoint time) const {
  return telemetry::UnixNanoseconds{time.time_since_epoch()} + wall_offset_;
}

}  // namespace balanceroute::proxy
