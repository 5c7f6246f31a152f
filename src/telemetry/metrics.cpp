#include "telemetry/metrics.hpp"

#include <prometheus/counter.h>
#include <prometheus/histogram.h>
#include <prometheus/text_serializer.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "stats/length_buckets.hpp"

namespace balanceroute::telemetry {

namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kWaitBuckets{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600};
const Buckets kTpotBuckets{0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.15, 0.25, 0.5, 1};

prometheus::Histogram& histogram(prometheus::Registry& registry, const std::string& name, const std::string& help,
                                 const Buckets& buckets) {
  return prometheus::BuildHistogram().Name(name).Help(help).Register(registry).Add({}, buckets);
}

// One histogram for each class of lengths, named by the longest in it.
std::vector<prometheus::Histogram*> by_length(prometheus::Registry& registry, const std::string& name,
                                              const std::string& help, const std::string& label,
                                              const LengthBucketEnds& ends, const Buckets& buckets) {
  auto& family = prometheus::BuildHistogram().Name(name).Help(help).Register(registry);
  std::vector<prometheus::Histogram*> all;
  for (std::size_t i = 0; i < kLengthBuckets; ++i) {
    const std::string longest = i < ends.size() ? std::to_string(ends[i].count()) : "more";
    all.push_back(&family.Add({{label, longest}}, buckets));
  }
  return all;
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

prometheus::ClientMetric labelled(const std::vector<Label>& labels) {
  prometheus::ClientMetric metric;
  for (const Label& label : labels) metric.label.push_back({label.name, label.value});
  return metric;
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
      tokens_{counter(registry_, "balanceroute_stream_tokens_total", "Output tokens that came for clients.")},
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
                           kWaitBuckets)} {
  ttft_ = by_length(registry_, "balanceroute_request_ttft_seconds", "Time from arrival to the first token.",
                    "prompt_tokens", kPromptBucketEnds, kWaitBuckets);
  tpot_ = by_length(registry_, "balanceroute_request_tpot_seconds", "Time per output token after the first.",
                    "output_tokens", kOutputBucketEnds, kTpotBuckets);
  auto& e2e = prometheus::BuildHistogram()
                  .Name("balanceroute_request_e2e_seconds")
                  .Help("Time from arrival to the end, by how requests ended.")
                  .Register(registry_);
  auto& family = prometheus::BuildCounter()
                     .Name("balanceroute_request_finished_total")
                     .Help("Requests that ended, by how they ended.")
                     .Register(registry_);
  for (std::size_t i = 0; i < kOutcomes; ++i) {
    const std::string outcome{to_string(static_cast<Outcome>(i))};
    finished_.push_back(&family.Add({{"outcome", outcome}}));
    e2e_.push_back(&e2e.Add({{"outcome", outcome}}, kWaitBuckets));
  }
}

void RouterMetrics::request_finished(const FinishedRequest& request, std::chrono::nanoseconds now) {
  const auto outcome = static_cast<std::size_t>(request.outcome);
  const RequestTimes& times = request.times;
  finished_[outcome]->Increment();
  of_tenants_.Add({{"tenant", request.tenant}, {"outcome", std::string{to_string(request.outcome)}}}).Increment();
  tokens_of_tenants_.Add({{"tenant", request.tenant}}).Increment(static_cast<double>(request.output_tokens));
  recent_.add(now, times);
  observe(arrival_wait_, times.arrival_wait);
  observe(prefill_, times.prefill);
  observe(pool_wait_, times.pool_wait);
  const Tokens answer{request.output_tokens / std::max<std::int64_t>(request.answers, 1)};
  observe(*ttft_[length_bucket(Tokens{request.prompt_tokens}, kPromptBucketEnds)], times.ttft);
  observe(*tpot_[length_bucket(answer, kOutputBucketEnds)], times.tpot);
  observe(*e2e_[outcome], times.e2e);
}

void RouterMetrics::tokens_came(std::int64_t tokens) {
  tokens_.Increment(static_cast<double>(tokens));
}

std::array<std::int64_t, kOutcomes> RouterMetrics::finished() const {
  std::array<std::int64_t, kOutcomes> counts{};
  for (std::size_t i = 0; i < kOutcomes; ++i) counts[i] = std::llround(finished_[i]->Value());
  return counts;
}

std::int64_t RouterMetrics::tokens() const {
  return std::llround(tokens_.Value());
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
  prometheus::ClientMetric metric = labelled(labels);
  (family.type == prometheus::MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  family.metric.push_back(std::move(metric));
}

void add_histogram(prometheus::MetricFamily& family, const std::vector<Label>& labels, const TimeHistogram& times) {
  prometheus::ClientMetric metric = labelled(labels);
  for (std::size_t i = 0; i < TimeHistogram::kEnds.size(); ++i) {
    metric.histogram.bucket.push_back({.cumulative_count = times.up_to(i), .upper_bound = TimeHistogram::kEnds[i]});
  }
  metric.histogram.bucket.push_back(
      {.cumulative_count = times.count(), .upper_bound = std::numeric_limits<double>::infinity()});
  metric.histogram.sample_count = times.count();
  metric.histogram.sample_sum = times.sum();
  family.metric.push_back(std::move(metric));
}

}  // namespace balanceroute::telemetry
