// tracing_params.hpp - whether and where spans of requests are sent.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"

namespace balanceroute::proxy {

struct TracingParams {
  std::string otlp_endpoint;
  double sample_ratio = 1;
  std::string service_name = "balanceroute";
  double interval_ms = 2'000;
  std::int64_t queue_spans = 8'192;

  void visit_params(ParamVisitor& visitor);
};

}  // namespace balanceroute::proxy
