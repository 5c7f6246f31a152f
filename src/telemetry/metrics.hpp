// metrics.hpp - Prometheus metrics: what is counted as it happens, and how a scrape becomes text.
//
// Leaves out state that is read at scrape time (loads, queues): its owner gives it as families to exposition().
#pragma once

#include <prometheus/family.h>
#include <prometheus/metric_family.h>
#include <prometheus/registry.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

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

// RequestTimes are what one finished request adds to the histograms, in seconds; negative means that it never came to
// that point.
struct RequestTimes {
  double arrival_wait = -1;  // from arrival to a prefill instance
  double prefill = -1;       // of the prefill instance, tries that failed included
  double pool_wait = -1;     // from there, or from arrival where nothing is prefilled before, to a worker
  double ttft = -1;          // from arrival to the first token
  double tpot = -1;          // between tokens after the first
  double e2e = -1;           // from arrival to the end
};

// RouterMetrics holds every metric that is counted as requests pass.
//   Threads  any; counters are atomic.
class RouterMetrics {
 public:
  RouterMetrics();

  // `tenant`: one of those that the router was told of, as they are a label.
  void request_finished(Outcome outcome, const RequestTimes& times, std::int64_t tokens, const std::string& tenant);
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
  prometheus::Histogram& ttft_;
  prometheus::Histogram& tpot_;
  prometheus::Histogram& e2e_;
};

// A family of gauges or counters to be filled at scrape time.
prometheus::MetricFamily make_family(std::string name, std::string help, prometheus::MetricType type);

struct Label {
  std::string name;
  std::string value;
};
void add_sample(prometheus::MetricFamily& family, const std::vector<Label>& labels, double value);

}  // namespace balanceroute::telemetry
