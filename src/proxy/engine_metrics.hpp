// engine_metrics.hpp - what an engine's /metrics page says of its decode ranks.
//
// Reads the Prometheus text format and the names of vLLM and SGLang. Names are compared whole: vLLM has
// num_requests_waiting beside num_requests_waiting_by_reason.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace balanceroute::proxy {

// One line of a page.
struct MetricSample {
  std::string_view name;
  std::string_view labels;  // between the braces, as written
  double value;

  // The value of a label, without its escapes; none if it is not there.
  [[nodiscard]] std::optional<std::string> label(std::string_view label_name) const;
};

// Calls `take` with each sample of the page; lines that are none are passed over.
void read_metric_samples(std::string_view page, const std::function<void(const MetricSample&)>& take);

// What one rank says of itself; none where it says nothing.
struct RankReading {
  std::optional<std::int64_t> running;
  std::optional<std::int64_t> waiting;
  std::optional<double> kv_usage;  // 0..1
  // Counters that only grow while the engine lives.
  double generated_tokens = 0;
  double finished_requests = 0;
  double prompt_tokens_computed = 0;     // locally
  double prompt_tokens_transferred = 0;  // KV from elsewhere
};

// A whole page.
struct EngineReading {
  std::map<std::int64_t, RankReading> ranks;  // by the number that the engine gives the rank
  double started_at = 0;                      // process_start_time_seconds; 0 if it is not told

  [[nodiscard]] bool says_something() const { return !ranks.empty(); }
};

EngineReading read_engine_metrics(std::string_view page);

// Whether the engine was started anew between the two readings: its start moved or what only grows went back.
[[nodiscard]] bool restarted_between(const EngineReading& before, const EngineReading& after);

}  // namespace balanceroute::proxy
