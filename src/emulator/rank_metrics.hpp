// rank_metrics.hpp - the state of the ranks behind a port as the Prometheus series of vLLM or of SGLang.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "core/units.hpp"
#include "emulator/step_histogram.hpp"

namespace balanceroute::emulator {

// Sequences that ended, by vLLM's finished_reason.
struct FinishedCounters {
  std::int64_t stop = 0;
  std::int64_t length = 0;
  std::int64_t abort = 0;

  void count(std::string_view reason) { ++(reason == "length" ? length : stop); }
};

// One rank as its metrics tell it.
struct RankFigures {
  std::size_t engine = 0;  // its number in the label
  std::int64_t running = 0;
  std::int64_t waiting = 0;
  Tokens kv_used;
  Tokens kv_capacity;
  std::int64_t preemptions = 0;
  std::int64_t prompt_tokens = 0;
  std::int64_t transferred_prompt_tokens = 0;  // of them those whose KV came from a prefill engine
  std::int64_t generated_tokens = 0;
  FinishedCounters finished;
  StepHistogram step_tokens;
};

struct MetricLabels {
  std::string model;
  std::string engine_type;  // SGLang's: unified, prefill or decode
  std::int64_t block_size = 1;
};

// The text of /metrics.
[[nodiscard]] std::string vllm_metrics(const MetricLabels& labels, std::span<const RankFigures> ranks);
[[nodiscard]] std::string sglang_metrics(const MetricLabels& labels, std::span<const RankFigures> ranks);

}  // namespace balanceroute::emulator
