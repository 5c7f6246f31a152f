// metrics.hpp - Prometheus metrics: what is counted as it happens, and how a scrape becomes text.
//
// Leaves out state that is read at scrape time (loads, queues): its owner gives it as families to exposition().
#pragma once

#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "telemetry/recent_requests.hpp"
#include "telemetry/request_times.hpp"
#include "telemetry/time_histogram.hpp"

namespace prometheus {
class Counter;
class Histogram;
}  // namespace prometheus

namespace balanceroute::telemetry {

// How a request ended. A closed set, because it is a label.
enum class Outcome : std::uint8_t {
  Ok,
  ClientError,    // refused for what the client sent
  ClientLeft,     // the client closed first
  Rejected,       // no room or no worker
  UpstreamError,  // the worker failed or answered nonsense
  Timeout         // a deadline passed
};
inline constexpr std::size_t kOutcomes = 6;

std::string_view to_string(Outcome outcome);

// What is known of a request that has ended.
struct FinishedRequest {
  Outcome outcome;
  RequestTimes times;
  std::int64_t prompt_tokens = 0;
  std::int64_t output_tokens = 0;  // of all its answers
  std::int64_t answers = 1;
  const std::string& tenant;  // one of those that the router was told of, as they are a label
};

// RouterMetrics holds every metric that is counted as requests pass.
//   Threads  any; counters are atomic.
class RouterMetrics {
 public:
  RouterMetrics();

  // `now` is a monotonic clock's.
  void request_finished(const FinishedRequest& request, std::chrono::nanoseconds now);
  // So many output tokens have come for a client.
  void tokens_came(std::int64_t tokens);
  void unknown_path();
  // A request came without a key that is known.
  void unauthorized();
  // A request could not be read, and was answered with that status.
  void refused(int status);
  // A client could not shake hands.
  void tls_failed();
  // A request was refused because its key has reached the limit of that name.
  void limited(const std::string& tenant, const std::string& limit);
  // A prefill instance failed a request.
  void prefill_failed();
  // A decode worker failed a request that another leg had prefilled; both legs are tried again.
  void kv_lost();
  // A decode worker failed a request before anything had reached the client, and it is tried again; or it would be,
  // had the budget not been spent.
  void request_retried();
  void retry_denied();
  // A decode worker ended an answer for want of KV space, and another one goes on with it.
  void answer_given_up();
  // A decode worker computes a prompt itself that a prefill instance was meant for. `reason`: "no_kv", the instance
  // kept nothing, or "prefill_lost", none answered.
  void decoded_alone(std::string_view reason);

  // For who looks now: requests that ended, by Outcome; output tokens; what the requests of the last minute took.
  [[nodiscard]] std::array<std::int64_t, kOutcomes> finished() const;
  [[nodiscard]] std::int64_t tokens() const;
  [[nodiscard]] RecentTimes recent(std::chrono::nanoseconds now) const { return recent_.summary(now); }

  // All metrics, those given included, in the Prometheus text format.
  std::string exposition(std::vector<prometheus::MetricFamily> more) const;

 private:
  prometheus::Registry registry_;
  std::vector<prometheus::Counter*> finished_;  // by outcome
  prometheus::Family<prometheus::Counter>& of_tenants_;
  prometheus::Family<prometheus::Counter>& tokens_of_tenants_;
  prometheus::Family<prometheus::Counter>& limited_;
  prometheus::Family<prometheus::Counter>& refused_;
  prometheus::Counter& unknown_paths_;
  prometheus::Counter& unauthorized_;
  prometheus::Counter& tls_failures_;
  prometheus::Counter& tokens_;
  prometheus::Counter& prefill_failures_;
  prometheus::Counter& kv_losses_;
  prometheus::Counter& retries_;
  prometheus::Counter& retries_denied_;
  prometheus::Counter& given_up_;
  prometheus::Counter& alone_without_kv_;
  prometheus::Counter& alone_without_prefill_;
  prometheus::Histogram& arrival_wait_;
  prometheus::Histogram& prefill_;
  prometheus::Histogram& pool_wait_;
  std::vector<prometheus::Histogram*> ttft_;  // by length of the prompt
  std::vector<prometheus::Histogram*> tpot_;  // by length of the answer
  std::vector<prometheus::Histogram*> e2e_;   // by outcome
  RecentRequests recent_;
};

// A family of gauges or counters to be filled at scrape time.
prometheus::MetricFamily make_family(std::string name, std::string help, prometheus::MetricType type);

struct Label {
  std::string name;
  std::string value;
};
void add_sample(prometheus::MetricFamily& family, const std::vector<Label>& labels, double value);
void add_histogram(prometheus::MetricFamily& family, const std::vector<Label>& labels, const TimeHistogram& times);

}  // namespace balanceroute::telemetry
