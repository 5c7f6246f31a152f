#include "telemetry/otlp.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::telemetry {

namespace {

using json = nlohmann::ordered_json;

constexpr int kStatusError = 2;

json value_json(const std::string& text) {
  return {{"stringValue", text}};
}

json value_json(std::int64_t number) {
  return {{"intValue", std::to_string(number)}};
}

json value_json(double number) {
  return {{"doubleValue", number}};
}

json attribute_json(std::string_view key, const Span::Value& value) {
  return {{"key", key}, {"value", std::visit([](const auto& held) { return value_json(held); }, value)}};
}

std::string nanoseconds(UnixNanoseconds time) {
  return std::to_string(time.time_since_epoch().count());
}

json span_json(const Span& span) {
  json out{{"traceId", to_hex(span.context.trace)}, {"spanId", to_hex(span.context.span)}};
  if (span.parent) out["parentSpanId"] = to_hex(*span.parent);
  out["name"] = span.name;
  out["kind"] = static_cast<int>(span.kind);
  out["startTimeUnixNano"] = nanoseconds(span.begin);
  out["endTimeUnixNano"] = nanoseconds(span.end);
  json& attributes = out["attributes"] = json::array();
  for (const auto& [key, value] : span.attributes) attributes.push_back(attribute_json(key, value));
  if (span.error) out["status"] = {{"code", kStatusError}, {"message", *span.error}};
  return out;
}

}  // namespace

std::string to_otlp_json(std::span<const Span> spans, std::string_view service_name, std::string_view version) {
  json list = json::array();
  for (const Span& span : spans) list.push_back(span_json(span));
  const json resource{{"attributes", json::array({attribute_json("service.name", std::string{service_name}),
                                                  attribute_json("service.version", std::string{version})})}};
  const json scope{{"name", "balanceroute"}, {"version", version}};
  const json scope_spans{{"scope", scope}, {"spans", std::move(list)}};
  const json resource_spans{{"resource", resource}, {"scopeSpans", json::array({scope_spans})}};
  return json{{"resourceSpans", json::array({resource_spans})}}.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace balanceroute::telemetry
