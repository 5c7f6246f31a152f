#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>
#include <vector>

#include "sim/comparison.hpp"
#include "sim/report.hpp"
#include "sim/text_table.hpp"

namespace balanceroute::sim {
namespace {

struct Column {
  std::string_view title;
  int decimals;
  Measure measure;
};

constexpr Column kColumns[] = {
    {"step ms", 2, [](const RunResult& r) { return r.step_ms_mean; }},
    {"load idle %", 2, [](const RunResult& r) { return 100 * r.load_idle_fraction; }},
    {"barrier idle %", 2, [](const RunResult& r) { return 100 * r.barrier_idle_fraction; }},
    {"of bound %", 2, [](const RunResult& r) { return 100 * r.bound_share; }},
    {"spread", 0, [](const RunResult& r) { return r.spread_mean_tokens; }},
    {"busy %", 1, [](const RunResult& r) { return 100 * r.busy_fraction; }},
    {"awaited %", 1, [](const RunResult& r) { return 100 * r.slot_idle_waiting_fraction; }},
    {"tok/s", 0, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    {"TPOT ms", 2, [](const RunResult& r) { return r.tpot_ms.mean; }},
    {"P95", 2, [](const RunResult& r) { return r.tpot_ms.p95; }},
    {"TTFT P95 ms", 0, [](const RunResult& r) { return r.ttft_ms.p95; }},
    {"wait P99 ms", 0, [](const RunResult& r) { return r.pool_wait_ms.p99; }},
    {"J/tok", 2, [](const RunResult& r) { return r.energy_joule_per_token; }},
};

constexpr Column kChanges[] = {
    {"tok/s change %", 2, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    {"TPOT change %", 2, [](const RunResult& r) { return r.tpot_ms.mean; }},
};

// "+1.23 +- 0.45"; without the interval for a single seed.
std::string change_text(const MeanInterval& change, int decimals) {
  std::string text = fmt::format("{:+.{}f}", change.mean, decimals);
  if (change.half_width) text += fmt::format(" +- {:.{}f}", *change.half_width, decimals);
  return text;
}

double seconds_taken(Cell cell) {
  return std::accumulate(cell.begin(), cell.end(), 0.0,
                         [](double sum, const Run& run) { return sum + run.took.count(); });
}

// What is written of every run.
class BlockTable {
 public:
  BlockTable(const Experiment& experiment, const Block& block) : experiment_{experiment}, block_{block} {}

  [[nodiscard]] std::string text() const {
    TextTable table;
    table.add(titles());
    for (std::size_t variant = 0; variant < experiment_.variants().size(); ++variant) table.add(row(variant));
    return table.text();
  }

 private:
  [[nodiscard]] bool timings() const { return experiment_.params().timings; }

  [[nodiscard]] std::vector<std::string> titles() const {
    std::vector<std::string> row{"policy"};
    for (const Column& column : kColumns) row.emplace_back(column.title);
    for (const Column& column : kChanges) row.emplace_back(column.title);
    if (timings()) row.emplace_back("took s");
    return row;
  }

  [[nodiscard]] std::vector<std::string> row(std::size_t variant) const {
    const Cell cell = block_.cell(variant);
    std::vector<std::string> row{experiment_.variants()[variant].label + (any_non_stationary(cell) ? " *" : "")};
    for (const Column& column : kColumns) {
      row.push_back(fmt::format("{:.{}f}", mean_of(cell, column.measure).mean, column.decimals));
    }
    for (const Column& column : kChanges) {
      const Cell base = block_.cell(block_.base());
      row.push_back(variant == block_.base() ? ""
                                             : change_text(change_of(cell, base, column.measure), column.decimals));
    }
    if (timings()) row.push_back(fmt::format("{:.2f}", seconds_taken(cell)));
    return row;
  }

  const Experiment& experiment_;
  const Block& block_;
};

// A line of figures of one distribution, means over seeds.
struct Distribution {
  std::string_view title;
  Summary (*of)(const RunResult&);
};

constexpr Distribution kDistributions[] = {
    {"TPOT ms", [](const RunResult& r) { return r.tpot_ms; }},
    {"TTFT ms", [](const RunResult& r) { return r.ttft_ms; }},
    {"wait ms", [](const RunResult& r) { return r.pool_wait_ms; }},
};

template <class Read>
std::string seeds_mean(Cell cell, const Read& read, int decimals) {
  double sum = 0;
  for (const Run& run : cell) sum += read(run.result);
  return fmt::format("{:.{}f}", sum / static_cast<double>(cell.size()), decimals);
}

std::string distributions(const Experiment& experiment, const Block& block) {
  TextTable table;
  table.add({"times", "", "mean", "P50", "P95", "P99", "max"});
  for (const Distribution& each : kDistributions) {
    for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
      std::vector<std::string> row{experiment.variants()[variant].label, std::string{each.title}};
      for (double Summary::* figure : {&Summary::mean, &Summary::p50, &Summary::p95, &Summary::p99, &Summary::max}) {
        row.push_back(seeds_mean(block.cell(variant), [&](const RunResult& r) { return each.of(r).*figure; }, 2));
      }
      table.add(std::move(row));
    }
  }
  return table.text();
}

// "<= 512", ..., "> 32768".
std::string bucket_title(const LengthBucketEnds& ends, std::size_t bucket) {
  return bucket < ends.size() ? fmt::format("<= {}", ends[bucket].count()) : fmt::format("> {}", ends.back().count());
}

// Who pays: times by length of the prompt and of the output.
struct Division {
  std::string_view title;
  const LengthBucketEnds& ends;
  ValuesByLength::ByBucket RunResult::* tpot;
  ValuesByLength::ByBucket RunResult::* wait;
};

constexpr Division kDivisions[] = {
    {"prompt", kPromptBucketEnds, &RunResult::tpot_by_prompt_ms, &RunResult::wait_by_prompt_ms},
    {"output", kOutputBucketEnds, &RunResult::tpot_by_output_ms, &RunResult::wait_by_output_ms},
};

// One variant's row of a division; "-" for what no request tells.
std::vector<std::string> bucket_row(Cell cell, const Division& division, std::size_t bucket) {
  const auto tpot = [&](const RunResult& r) -> const Summary& { return (r.*division.tpot)[bucket]; };
  const auto wait = [&](const RunResult& r) -> const Summary& { return (r.*division.wait)[bucket]; };
  const bool timed = std::ranges::any_of(cell, [&](const Run& run) { return tpot(run.result).count > 0; });
  return {bucket_title(division.ends, bucket),
          seeds_mean(
              cell, [&](const RunResult& r) { return static_cast<double>(wait(r).count); }, 0),
          timed ? seeds_mean(
                      cell, [&](const RunResult& r) { return tpot(r).mean; }, 2)
                : "-",
          seeds_mean(
              cell, [&](const RunResult& r) { return wait(r).mean; }, 0),
          seeds_mean(cell, [&](const RunResult& r) { return wait(r).p99; }, 0)};
}

bool any_in(Cell cell, const Division& division, std::size_t bucket) {
  return std::ranges::any_of(cell, [&](const Run& run) { return (run.result.*division.wait)[bucket].count > 0; });
}

std::string by_length(const Experiment& experiment, const Block& block, const Division& division) {
  TextTable table;
  table.add({fmt::format("by {}", division.title), "tokens", "requests", "TPOT ms", "wait ms", "wait P99 ms"});
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    for (std::size_t bucket = 0; bucket < kLengthBuckets; ++bucket) {
      if (!any_in(block.cell(variant), division, bucket)) continue;
      std::vector<std::string> row = bucket_row(block.cell(variant), division, bucket);
      row.insert(row.begin(), experiment.variants()[variant].label);
      table.add(std::move(row));
    }
  }
  return table.text();
}

std::string heading(const Experiment& experiment) {
  const trace::LengthStatistics& lengths = experiment.lengths();
  const SimulateParams& params = experiment.params();
  std::string text = fmt::format("{}: {} requests", experiment.trace().name, lengths.requests);
  if (params.repeat > 1) text += fmt::format(", played {} times", params.repeat);
  text += fmt::format("; mean prompt {:.1f}, output {:.1f}, load of a busy slot {:.1f} tokens\n", lengths.mean_prompt,
                      lengths.mean_output, lengths.busy_slot_weight);
  const std::int64_t skipped = experiment.trace().skipped_rows;
  if (skipped > 0) text += fmt::format("{} bad row{} left out\n", skipped, skipped == 1 ? "" : "s");
  return text;
}

std::string block_heading(const Experiment& experiment, const Block& block) {
  const SimulateParams& params = experiment.params();
  const std::size_t seeds = params.seeds.size();
  return fmt::format("\n{} of {} workers with {} slots, load {}, {}; changes against {}\n",
                     params.groups == 1 ? "1 group" : fmt::format("{} groups", params.groups), block.workers(),
                     params.slots, block.load(), seeds == 1 ? "1 seed" : fmt::format("{} seeds", seeds),
                     experiment.variants()[block.base()].label);
}

}  // namespace

std::string table_report(const Experiment& experiment, std::span<const Run> runs) {
  std::string text = heading(experiment);
  for (const Block& block : blocks_of(experiment, runs)) {
    text += block_heading(experiment, block) + BlockTable{experiment, block}.text();
    if (!experiment.params().details) continue;
    text += "\n" + distributions(experiment, block);
    for (const Division& division : kDivisions) text += "\n" + by_length(experiment, block, division);
  }
  if (experiment.params().seeds.size() > 1) {
    text += "\n+- is half of a 95 % interval of the difference on the same requests.\n";
  }
  if (any_non_stationary(runs)) {
    text +=
        "\n* not stationary: active sequences differ by more than 5 % between the halves of the measured window,\n"
        "  which supports no claim. A longer run (--repeat) may cure it.\n";
  }
  return text;
}

}  // namespace balanceroute::sim
