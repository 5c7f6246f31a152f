#include "emulator/rank_metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

namespace balanceroute::emulator {
namespace {

constexpr std::int64_t kBlockTokens = 16;

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Families of one rank; each metric carries the rank's labels and then its own.
class Families {
 public:
  explicit Families(Labels labels) : labels_{std::move(labels)} {}

  void gauge(std::string name, std::string help, double value) {
    prometheus::ClientMetric metric{.label = labels_};
    metric.gauge.value = value;
    add(std::move(name), std::move(help), prometheus::MetricType::Gauge, std::move(metric));
  }
  void counter(std::string name, std::string help, std::int64_t value, const Labels& own = {}) {
    prometheus::ClientMetric metric{.label = labels_};
    metric.label.insert(metric.label.end(), own.begin(), own.end());
    metric.counter.value = static_cast<double>(value);
    add(std::move(name), std::move(help), prometheus::MetricType::Counter, std::move(metric));
  }
  void histogram(std::string name, std::string help, const StepHistogram& values) {
    prometheus::ClientMetric metric{.label = labels_};
    auto& histogram = metric.histogram;
    histogram.sample_count = static_cast<std::uint64_t>(values.count());
    histogram.sample_sum = static_cast<double>(values.sum());
    std::int64_t below = 0;
    for (std::size_t i = 0; i < StepHistogram::kBounds.size(); ++i) {
      below += values.in_bucket(i);
      histogram.bucket.push_back({static_cast<std::uint64_t>(below), static_cast<double>(StepHistogram::kBounds[i])});
    }
    histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
    add(std::move(name), std::move(help), prometheus::MetricType::Histogram, std::move(metric));
  }
  // A series of value 1 whose labels are the information.
  void info(std::string name, std::string help, Labels labels) {
    prometheus::ClientMetric metric{.label = std::move(labels)};
    metric.gauge.value = 1;
    add(std::move(name), std::move(help), prometheus::MetricType::Gauge, std::move(metric));
  }

  [[nodiscard]] std::string text() const { return prometheus::TextSerializer{}.Serialize(families_); }

 private:
  // Metrics of one family follow each other.
  void add(std::string name, std::string help, prometheus::MetricType type, prometheus::ClientMetric metric) {
    if (families_.empty() || families_.back().name != name) {
      families_.push_back({std::move(name), std::move(help), type, {}});
    }
    families_.back().metric.push_back(std::move(metric));
  }

  Labels labels_;
  std::vector<prometheus::MetricFamily> families_;
};

}  // namespace

std::string rank_metrics(const SteppingGroup& group, std::size_t rank, const std::string& model, Tokens max_model_len,
                         const FinishedCounters& finished) {
  const auto engine = std::to_string(rank);
  const auto& counters = group.counters(rank);
  const std::int64_t blocks = group.model().slots() * max_model_len.count() / kBlockTokens;
  const double kv_usage =
      static_cast<double>(group.model().load(rank).count()) / static_cast<double>(blocks * kBlockTokens);
  Families families{{{"model_name", model}, {"engine", engine}}};
  families.gauge("vllm:num_requests_running", "Sequences in slots.", static_cast<double>(group.model().active(rank)));
  families.gauge("vllm:num_requests_waiting", "Sequences that wait for a slot.",
                 static_cast<double>(group.model().queued(rank)));
  families.gauge("vllm:kv_cache_usage_perc", "KV cache in use, 1 is all.", kv_usage);
  families.info("vllm:cache_config_info", "Size of the KV cache.",
                {{"block_size", std::to_string(kBlockTokens)},
                 {"num_gpu_blocks", std::to_string(blocks)},
                 {"enable_prefix_caching", "False"},
                 {"engine", engine}});
  families.counter("vllm:num_preemptions_total", "Sequences preempted.", 0);
  families.counter("vllm:prompt_tokens_total", "Prompt tokens processed.", counters.prompt_tokens);
  families.counter("vllm:generation_tokens_total", "Tokens generated.", counters.generated_tokens);
  families.counter("vllm:request_success_total", "Sequences ended.", finished.stop, {{"finished_reason", "stop"}});
  families.counter("vllm:request_success_total", "", finished.length, {{"finished_reason", "length"}});
  families.counter("vllm:request_success_total", "", finished.abort, {{"finished_reason", "abort"}});
  families.histogram("vllm:iteration_tokens_total", "Tokens of an engine step.", counters.step_tokens);
  return families.text();
}

}  // namespace balanceroute::emulator
