#include "proxy/engine_metrics.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace balanceroute::proxy {

namespace {

constexpr std::string_view kBlank = " \t";

std::string_view trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

// The end of a label set that begins at `from`, past its '{'; braces within quotes do not count.
std::size_t end_of_labels(std::string_view line, std::size_t from) {
  bool quoted = false;
  for (std::size_t i = from; i < line.size(); ++i) {
    if (quoted && line[i] == '\\') {
      ++i;
    } else if (line[i] == '"') {
      quoted = !quoted;
    } else if (line[i] == '}' && !quoted) {
      return i;
    }
  }
  return std::string_view::npos;
}

std::optional<MetricSample> read_sample(std::string_view line) {
  line = trimmed(line);
  if (line.empty() || line.front() == '#') return std::nullopt;
  MetricSample sample{};
  const std::size_t name_end = line.find_first_of("{ \t");
  if (name_end == std::string_view::npos) return std::nullopt;
  sample.name = line.substr(0, name_end);
  std::size_t value_at = name_end;
  if (line[name_end] == '{') {
    const std::size_t close = end_of_labels(line, name_end + 1);
    if (close == std::string_view::npos) return std::nullopt;
    sample.labels = line.substr(name_end + 1, close - name_end - 1);
    value_at = close + 1;
  }
  const std::string_view rest = trimmed(line.substr(value_at));
  const std::string_view number = rest.substr(0, rest.find_first_of(kBlank));  // a time stamp may follow
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), sample.value);
  if (error != std::errc{} || end != number.data() + number.size()) return std::nullopt;
  return sample;
}

// Reads a quoted value that begins at `at`, past its quote; returns the place of the closing quote.
std::size_t read_quoted(std::string_view text, std::size_t at, std::string& value) {
  for (; at < text.size() && text[at] != '"'; ++at) {
    if (text[at] == '\\' && at + 1 < text.size()) ++at;
    value += text[at];
  }
  return at;
}

enum class Field : std::uint8_t { running, waiting, kv_usage, generated, finished };

struct KnownName {
  std::string_view name;
  Field field;
};
constexpr auto kNames = std::to_array<KnownName>({
    {"vllm:num_requests_running", Field::running},
    {"vllm:num_requests_waiting", Field::waiting},
    {"vllm:kv_cache_usage_perc", Field::kv_usage},
    {"vllm:gpu_cache_usage_perc", Field::kv_usage},
    {"vllm:generation_tokens_total", Field::generated},
    {"vllm:request_success_total", Field::finished},
    {"sglang:num_running_reqs", Field::running},
    {"sglang:num_queue_reqs", Field::waiting},
    {"sglang:token_usage", Field::kv_usage},
    {"sglang:generation_tokens_total", Field::generated},
    {"sglang:num_requests_total", Field::finished},
});
constexpr std::string_view kBySource = "vllm:prompt_tokens_by_source_total";

// The rank that a sample is about: vLLM labels it `engine`, SGLang `dp_rank`; an engine of one rank may say nothing.
std::int64_t rank_of(const MetricSample& sample) {
  const auto text = sample.label(sample.name.starts_with("sglang:") ? "dp_rank" : "engine");
  std::int64_t rank = 0;
  if (text) std::from_chars(text->data(), text->data() + text->size(), rank);
  return rank;
}

// More sequences than any engine has; their sums over all samples of a page fit.
constexpr double kMostSequences = 1e9;

// What cannot be a number of sequences says nothing.
void add_to(std::optional<std::int64_t>& sum, double value) {
  if (value >= 0 && value <= kMostSequences) sum = sum.value_or(0) + std::llround(value);
}

void take_field(RankReading& rank, Field field, double value) {
  switch (field) {
    case Field::running:
      return add_to(rank.running, value);
    case Field::waiting:
      return add_to(rank.waiting, value);
    case Field::kv_usage:
      rank.kv_usage = value;
      return;
    case Field::generated:
      rank.generated_tokens += value;
      return;
    case Field::finished:
      rank.finished_requests += value;
      return;
  }
}

}  // namespace

std::optional<std::string> MetricSample::label(std::string_view label_name) const {
  std::size_t at = 0;
  while (at < labels.size()) {
    const std::size_t equals = labels.find('=', at);
    if (equals == std::string_view::npos || equals + 1 >= labels.size() || labels[equals + 1] != '"') break;
    std::string text;
    const std::size_t close = read_quoted(labels, equals + 2, text);
    if (trimmed(labels.substr(at, equals - at)) == label_name) return text;
    at = labels.find_first_not_of(", \t", std::min(close + 1, labels.size()));
  }
  return std::nullopt;
}

void read_metric_samples(std::string_view page, const std::function<void(const MetricSample&)>& take) {
  while (!page.empty()) {
    const std::size_t end = page.find('\n');
    if (const auto sample = read_sample(page.substr(0, end))) take(*sample);
    if (end == std::string_view::npos) return;
    page.remove_prefix(end + 1);
  }
}

EngineReading read_engine_metrics(std::string_view page) {
  EngineReading reading;
  read_metric_samples(page, [&](const MetricSample& sample) {
    if (std::isnan(sample.value)) return;
    if (sample.name == "process_start_time_seconds") reading.started_at = sample.value;
    if (sample.name == kBySource) {
      RankReading& rank = reading.ranks[rank_of(sample)];
      const auto source = sample.label("source");
      if (source == "local_compute") rank.prompt_tokens_computed += sample.value;
      if (source == "external_kv_transfer") rank.prompt_tokens_transferred += sample.value;
    }
    for (const KnownName& known : kNames) {
      if (known.name == sample.name) take_field(reading.ranks[rank_of(sample)], known.field, sample.value);
    }
  });
  return reading;
}

bool restarted_between(const EngineReading& before, const EngineReading& after) {
  // Clocks are set by a little now and then; a new process starts later by more.
  if (before.started_at > 0 && after.started_at > before.started_at + 1) return true;
  for (const auto& [number, earlier] : before.ranks) {
    const auto later = after.ranks.find(number);
    if (later == after.ranks.end()) continue;
    if (later->second.generated_tokens < earlier.generated_tokens) return true;
    if (later->second.finished_requests < earlier.finished_requests) return true;
  }
  return false;
}

}  // namespace balanceroute::proxy
