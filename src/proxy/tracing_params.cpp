#include "proxy/tracing_params.hpp"

namespace balanceroute::proxy {

void TracingParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"otlp_endpoint",
                "Collector that spans of requests are sent to, as http://127.0.0.1:4318; spans go to its /v1/traces as "
                "OTLP/HTTP with JSON. Empty: none are sent."},
               otlp_endpoint);
  visitor.real(
      {"sample_ratio", "Share of the traces begun here that are recorded; a client's traceparent decides for its own."},
      sample_ratio, {0, 1});
  visitor.text({"service_name", "Name of this router in traces."}, service_name);
  visitor.real({"interval_ms", "Time between two deliveries to the collector."}, interval_ms, {10, 60'000});
  visitor.integer({"queue_spans", "Spans that may wait for a collector that does not answer; more are dropped."},
                  queue_spans, {16, 1'000'000});
}

}  // namespace balanceroute::proxy
