#include "emulator/rank_metrics.hpp"

#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include <limits>
#include <utility>
#include <vector>

namespace balanceroute::emulator {
namespace {

using Labels = std::vector<prometheus::ClientMetric::Label>;

// Families of the ranks behind one port; each metric carries its rank's labels and then its own.
class Families {
 public:
  Families(std::span<const RankFigures> ranks, std::vector<Labels> labels)
      : ranks_{ranks}, labels_{std::move(labels)} {}

  template <class Value>
  void gauge(std::string name, std::string help, Value value) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Gauge);
    for (std::size_t i = 0; i < ranks_.size(); ++i) metric(i).gauge.value = static_cast<double>(value(ranks_[i]));
  }
  template <class Value>
  void counter(std::string name, std::string help, Value value) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Counter);
    more_of_counter(value, {});
  }
  // A further series of the last counter.
  template <class Value>
  void more_of_counter(Value value, const Labels& own) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      metric(i, own).counter.value = static_cast<double>(value(ranks_[i]));
    }
  }
  template <class Value>
  void labelled_counter(std::string name, std::string help, Value value, const Labels& own) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Counter);
    more_of_counter(value, own);
  }
  void steps(std::string name, std::string help) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Histogram);
    for (std::size_t i = 0; i < ranks_.size(); ++i) fill(metric(i).histogram, ranks_[i].step_tokens);
  }
  // A series of value 1 for each rank whose labels are the information.
  template <class Information>
  void info(std::string name, std::string help, Information labels_of) {
    begin(std::move(name), std::move(help), prometheus::MetricType::Gauge);
    for (const auto& rank : ranks_) {
      prometheus::ClientMetric one{.label = labels_of(rank)};
      one.gauge.value = 1;
      families_.back().metric.push_back(std::move(one));
    }
  }

  [[nodiscard]] std::string text() const { return prometheus::TextSerializer{}.Serialize(families_); }

 private:
  void begin(std::string name, std::string help, prometheus::MetricType type) {
    families_.push_back({std::move(name), std::move(help), type, {}});
  }
  prometheus::ClientMetric& metric(std::size_t rank, const Labels& own = {}) {
    auto& added = families_.back().metric.emplace_back();
    added.label = labels_[rank];
    added.label.insert(added.label.end(), own.begin(), own.end());
    return added;
  }
  static void fill(prometheus::ClientMetric::Histogram& histogram, const StepHistogram& values) {
    histogram.sample_count = static_cast<std::uint64_t>(values.count());
    histogram.sample_sum = static_cast<double>(values.sum());
    std::int64_t below = 0;
    for (std::size_t i = 0; i < StepHistogram::kBounds.size(); ++i) {
      below += values.in_bucket(i);
      histogram.bucket.push_back({static_cast<std::uint64_t>(below), static_cast<double>(StepHistogram::kBounds[i])});
    }
    histogram.bucket.push_back({histogram.sample_count, std::numeric_limits<double>::infinity()});
  }

  std::span<const RankFigures> ranks_;
  std::vector<Labels> labels_;  // by rank
  std::vector<prometheus::MetricFamily> families_;
};

std::int64_t blocks_of(const RankFigures& rank, std::int64_t block_size) {
  return rank.kv_capacity.count() / block_size;
}

double usage_of(const RankFigures& rank) {
  return static_cast<double>(rank.kv_used.count()) / static_cast<double>(rank.kv_capacity.count());
}

}  // namespace

std::string vllm_metrics(const MetricLabels& labels, std::span<const RankFigures> ranks) {
  std::vector<Labels> own;
  for (const auto& rank : ranks) own.push_back({{"model_name", labels.model}, {"engine", std::to_string(rank.engine)}});
  Families families{ranks, std::move(own)};
  families.gauge("vllm:num_requests_running", "Sequences in slots.", [](const auto& rank) { return rank.running; });
  families.gauge("vllm:num_requests_waiting", "Sequences that wait for a slot, or for their KV.",
                 [](const auto& rank) { return rank.waiting; });
  families.gauge("vllm:kv_cache_usage_perc", "KV cache in use, 1 is all.", usage_of);
  families.info("vllm:cache_config_info", "Size of the KV cache.", [&](const RankFigures& rank) -> Labels {
    return {{"block_size", std::to_string(labels.block_size)},
            {"num_gpu_blocks", std::to_string(blocks_of(rank, labels.block_size))},
            {"enable_prefix_caching", "False"},
            {"engine", std::to_string(rank.engine)}};
  });
  families.counter("vllm:num_preemptions_total", "Sequences preempted.",
                   [](const auto& rank) { return rank.preemptions; });
  families.counter("vllm:prompt_tokens_total", "Prompt tokens processed.",
                   [](const auto& rank) { return rank.prompt_tokens; });
  families.labelled_counter("vllm:prompt_tokens_by_source_total", "Prompt tokens by where their KV came from.",
                            [](const auto& rank) { return rank.prompt_tokens - rank.transferred_prompt_tokens; },
                            {{"source", "local_compute"}});
  families.more_of_counter([](const auto&) { return 0; }, {{"source", "local_cache_hit"}});
  families.more_of_counter([](const auto& rank) { return rank.transferred_prompt_tokens; },
                           {{"source", "external_kv_transfer"}});
  families.counter("vllm:generation_tokens_total", "Tokens generated.",
                   [](const auto& rank) { return rank.generated_tokens; });
  families.labelled_counter("vllm:request_success_total", "Sequences ended.",
                            [](const auto& rank) { return rank.finished.stop; }, {{"finished_reason", "stop"}});
  families.more_of_counter([](const auto& rank) { return rank.finished.length; }, {{"finished_reason", "length"}});
  families.more_of_counter([](const auto& rank) { return rank.finished.abort; }, {{"finished_reason", "abort"}});
  families.steps("vllm:iteration_tokens_total", "Tokens of an engine step.");
  return families.text();
}

std::string sglang_metrics(const MetricLabels& labels, std::span<const RankFigures> ranks) {
  std::vector<Labels> own;
  for (const auto& rank : ranks) {
    own.push_back({{"model_name", labels.model},
                   {"engine_type", labels.engine_type},
                   {"tp_rank", "0"},
                   {"pp_rank", "0"},
                   {"dp_rank", std::to_string(rank.engine)}});
  }
  Families families{ranks, std::move(own)};
  families.gauge("sglang:num_running_reqs", "Sequences in slots.", [](const auto& rank) { return rank.running; });
  families.gauge("sglang:num_queue_reqs", "Sequences that wait for a slot, or for their KV.",
                 [](const auto& rank) { return rank.waiting; });
  families.gauge("sglang:token_usage", "KV cache in use, 1 is all.", usage_of);
  families.gauge("sglang:max_total_num_tokens", "Size of the KV cache.",
                 [](const auto& rank) { return rank.kv_capacity.count(); });
  families.gauge("sglang:num_used_tokens", "Tokens in the KV cache.",
                 [](const auto& rank) { return rank.kv_used.count(); });
  families.gauge("sglang:page_size", "Tokens of a page.", [&](const auto&) { return labels.block_size; });
  families.gauge("sglang:num_pages", "Pages of the KV cache.",
                 [&](const auto& rank) { return blocks_of(rank, labels.block_size); });
  families.counter("sglang:num_retracted_requests_total", "Sequences preempted.",
                   [](const auto& rank) { return rank.preemptions; });
  families.counter("sglang:prompt_tokens_total", "Prompt tokens processed.",
                   [](const auto& rank) { return rank.prompt_tokens; });
  families.counter("sglang:generation_tokens_total", "Tokens generated.",
                   [](const auto& rank) { return rank.generated_tokens; });
  families.counter("sglang:num_requests_total", "Sequences ended.",
                   [](const auto& rank) { return rank.finished.stop + rank.finished.length; });
  families.counter("sglang:num_aborted_requests_total", "Sequences aborted.",
                   [](const auto& rank) { return rank.finished.abort; });
  return families.text();
}

}  // namespace balanceroute::emulator
