#include "telemetry/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <array>
#include <utility>

namespace balanceroute::telemetry {

namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kWaitBuckets{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
const Buckets kTpotBuckets{0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1};

prometheus::Histogram& histogram(prometheus::Registry& registry, const std::string& name, const std::string& help,
                                 const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

prometheus::Counter& counter(prometheus::Registry& registry, const std::string& name, const std::string& help) {
  return prometheus::BuildCounter().Name(name).Help(help).Register(registry).Add({});
}

prometheus::Counter& alone(prometheus::Registry& registry, const std::string& reason) {
  return prometheus::BuildCounter()
      .Name("balanceroute_prefill_skipped_total")
      .Help("Requests whose prompt a decode worker computed itself, by why.")
      .Register(registry)
      .Add({{"reason", reason}});
}

void observe(prometheus::Histogram& into, double seconds) {
  if (seconds >= 0) into.Observe(seconds);
}

}  // namespace

std::string_view to_string(Outcome outcome) {
  switch (outcome) {
    case Outcome::Ok:
      return "ok";
    case Outcome::ClientError:
      return "client_error";
    case Outcome::ClientLeft:
      return "client_left";
    case Outcome::Rejected:
      return "rejected";
    case Outcome::UpstreamError:
      return "upstream_error";
    case Outcome::Timeout:
      return "timeout";
  }
  return "unknown";
}

RouterMetrics::RouterMetrics()
    : of_tenants_{prometheus::BuildCounter()
                      .Name("balanceroute_tenant_requests_total")
                      .Help("Requests that ended, by whose they were and how they ended.")
                      .Register(registry_)},
      tokens_of_tenants_{prometheus::BuildCounter()
                             .Name("balanceroute_tenant_tokens_total")
                             .Help("Output tokens of finished requests, by whose they were.")
                             .Register(registry_)},
      limited_{prometheus::BuildCounter()
                   .Name("balanceroute_tenant_limited_total")
                   .Help("Requests refused because their API key has reached a limit, by whose they were and which.")
                   .Register(registry_)},
      refused_{prometheus::BuildCounter()
                   .Name("balanceroute_http_refused_total")
                   .Help("Requests that could not be read, by the status of the answer.")
                   .Register(registry_)},
      unknown_paths_{counter(registry_, "balanceroute_http_unknown_paths_total",
                             "Requests for paths that the router does not serve.")},
      unauthorized_{counter(registry_, "balanceroute_http_unauthorized_total",
                            "Requests refused because their API key is missing or not known.")},
      tls_failures_{counter(registry_, "balanceroute_tls_handshake_failures_total",
                            "Connections of clients that came to no TLS session.")},
      tokens_{counter(registry_, "balanceroute_stream_tokens_total", "Output tokens of finished requests.")},
      prefill_failures_{counter(registry_, "balanceroute_prefill_failures_total",
                                "Prefill requests that an instance failed; they are tried again elsewhere.")},
      kv_losses_{counter(registry_, "balanceroute_prefill_repeated_total",
                         "Prefilled requests that a decode worker failed; both legs are tried again.")},
      retries_{counter(registry_, "balanceroute_request_retries_total",
                       "Other tries of requests whose worker failed them before anything had reached the client.")},
      retries_denied_{counter(registry_, "balanceroute_request_retries_denied_total",
                              "Failed requests that were not tried again because the budget of retries was spent.")},
      given_up_{counter(registry_, "balanceroute_stream_given_up_total",
                        "Answers that a worker ended for want of KV space and another one went on with.")},
      alone_without_kv_{alone(registry_, "no_kv")},
      alone_without_prefill_{alone(registry_, "prefill_lost")},
      arrival_wait_{histogram(registry_, "balanceroute_arrival_wait_seconds",
                              "Time from arrival to a prefill instance.", kWaitBuckets)},
      prefill_{
          histogram(registry_, "balanceroute_prefill_seconds", "Time that a prefill instance takes.", kWaitBuckets)},
      pool_wait_{histogram(registry_, "balanceroute_pool_wait_seconds",
                           "Time from prefill, or from arrival where nothing is prefilled before, to a worker.",
                           kWaitBuckets)},
      ttft_{histogram(registry_, "balanceroute_request_ttft_seconds", "Time from arrival to the first token.",
                      kWaitBuckets)},
      tpot_{histogram(registry_, "balanceroute_request_tpot_seconds", "Time per output token after the first.",
                      kTpotBuckets)},
      e2e_{histogram(registry_, "balanceroute_request_e2e_seconds", "Time from arrival to the end.", kWaitBuckets)} {
  auto& family = prometheus::BuildCounter()
                     .Name("balanceroute_request_finished_total")
                     .Help("Requests that ended, by how they ended.")
                     .Register(registry_);
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    finished_.push_back(&family.Add({{"outcome", std::string{to_string(static_cast<Outcome>(i))}}}));
  }
}

void RouterMetrics::request_finished(Outcome outcome, const RequestTimes& times, std::int64_t tokens,
                                     const std::string& tenant) {
  finished_[static_cast<std::size_t>(outcome)]->Increment();
  of_tenants_.Add({{"tenant", tenant}, {"outcome", std::string{to_string(outcome)}}}).Increment();
  tokens_of_tenants_.Add({{"tenant", tenant}}).Increment(static_cast<double>(tokens));
  tokens_.Increment(static_cast<double>(tokens));
  observe(arrival_wait_, times.arrival_wait);
  observe(prefill_, times.prefill);
  observe(pool_wait_, times.pool_wait);
  observe(ttft_, times.ttft);
  observe(tpot_, times.tpot);
  observe(e2e_, times.e2e);
}

void RouterMetrics::unknown_path() {
  unknown_paths_.Increment();
}

void RouterMetrics::unauthorized() {
  unauthorized_.Increment();
}

void RouterMetrics::refused(int status) {
  refused_.Add({{"status", std::to_string(status)}}).Increment();
}

void RouterMetrics::tls_failed() {
  tls_failures_.Increment();
}

void RouterMetrics::limited(const std::string& tenant, const std::string& limit) {
  limited_.Add({{"tenant", tenant}, {"limit", limit}}).Increment();
}

void RouterMetrics::prefill_failed() {
  prefill_failures_.Increment();
}

void RouterMetrics::request_retried() {
  retries_.Increment();
}

void RouterMetrics::retry_denied() {
  retries_denied_.Increment();
}

void RouterMetrics::kv_lost() {
  kv_losses_.Increment();
}

void RouterMetrics::answer_given_up() {
  given_up_.Increment();
}

void RouterMetrics::decoded_alone(std::string_view reason) {
  (reason == "no_kv" ? alone_without_kv_ : alone_without_prefill_).Increment();
}

std::string RouterMetrics::exposition(std::vector<prometheus::MetricFamily> more) const {
  std::vector<prometheus::MetricFamily> families = registry_.Collect();
  for (auto& family : more) families.push_back(std::move(family));
  return prometheus::TextSerializer{}.Serialize(families);
}

prometheus::MetricFamily make_family(std::string name, std::string help, prometheus::MetricType type) {
  prometheus::MetricFamily family;
  family.name = std::move(name);
  family.help = std::move(help);
  family.type = type;
  return family;
}

void add_sample(prometheus::MetricFamily& family, const std::vector<Label>& labels, double value) {
  prometheus::ClientMetric metric;
  for (const Label& label : labels) metric.label.push_back({label.name, label.value});
  (family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  family.metric.push_back(std::move(metric));
}

}  // namespace balanceroute::telemetry
