// The body for a collector, against OTLP's JSON encoding.
#include "telemetry/otlp.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <vector>

namespace balanceroute::telemetry {
namespace {

using nlohmann::json;

constexpr UnixNanoseconds at(std::int64_t nanoseconds) {
  return UnixNanoseconds{std::chrono::nanoseconds{nanoseconds}};
}

// Law: ids are hexadecimal, 64-bit numbers are strings, attributes say their type.
TEST(Otlp, BodyOfOneSpan) {
  const TraceContext context = *parse_traceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  const SpanId parent{1, 2, 3, 4, 5, 6, 7, 8};
  const std::vector<Span> spans{{.context = context,
                                 .parent = parent,
                                 .kind = SpanKind::server,
                                 .name = "POST /v1/completions",
                                 .begin = at(1'700'000'000'000'000'001),
                                 .end = at(1'700'000'000'000'000'009),
                                 .attributes = {{"a", "text"}, {"b", std::int64_t{1} << 60}, {"c", 0.5}},
                                 .error = "it broke"}};
  EXPECT_EQ(json::parse(to_otlp_json(spans, "router", "1.2.3")), json::parse(R"({"resourceSpans":[{
      "resource":{"attributes":[{"key":"service.name","value":{"stringValue":"router"}},
                                {"key":"service.version","value":{"stringValue":"1.2.3"}}]},
      "scopeSpans":[{"scope":{"name":"balanceroute","version":"1.2.3"},"spans":[{
        "traceId":"4bf92f3577b34da6a3ce929d0e0e4736","spanId":"00f067aa0ba902b7","parentSpanId":"0102030405060708",
        "name":"POST /v1/completions","kind":2,
        "startTimeUnixNano":"1700000000000000001","endTimeUnixNano":"1700000000000000009",
        "attributes":[{"key":"a","value":{"stringValue":"text"}},
                      {"key":"b","value":{"intValue":"1152921504606846976"}},
                      {"key":"c","value":{"doubleValue":0.5}}],
        "status":{"code":2,"message":"it broke"}}]}]}]})"));
}

// Law: the first span of a trace has no parent, one that succeeded no status; what is no UTF-8 spoils nothing.
TEST(Otlp, WhatIsNotThere) {
  const std::vector<Span> spans{{.context = new_trace(true), .name = "\xff"}};
  const json span = json::parse(to_otlp_json(spans, "r", "0"))["resourceSpans"][0]["scopeSpans"][0]["spans"][0];
  EXPECT_FALSE(span.contains("parentSpanId"));
  EXPECT_FALSE(span.contains("status"));
  EXPECT_EQ(span["name"], "\xef\xbf\xbd");
}

}  // namespace
}  // namespace balanceroute::telemetry
