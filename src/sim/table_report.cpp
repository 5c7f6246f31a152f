#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/report.hpp"
#include "stats/paired_difference.hpp"

namespace balanceroute::sim {
namespace {

using Measure = double (*)(const RunResult&);
using Cell = std::span<const Run>;  // one policy's runs, a seed each

std::vector<double> values_of(Cell cell, Measure measure) {
  std::vector<double> values;
  for (const Run& run : cell) values.push_back(measure(run.result));
  return values;
}

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
    {"tok/s", 0, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    {"TPOT ms", 2, [](const RunResult& r) { return r.tpot_ms.mean; }},
    {"P95", 2, [](const RunResult& r) { return r.tpot_ms.p95; }},
    {"TTFT P95 ms", 0, [](const RunResult& r) { return r.ttft_ms.p95; }},
    {"wait P99 ms", 0, [](const RunResult& r) { return r.pool_wait_ms.p99; }},
};

constexpr Column kChanges[] = {
    {"tok/s change %", 2, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    {"TPOT change %", 2, [](const RunResult& r) { return r.tpot_ms.mean; }},
};

std::string mean_of(Cell cell, const Column& column) {
  return fmt::format("{:.{}f}", mean_interval(values_of(cell, column.measure)).mean, column.decimals);
}

// "+1.23 +- 0.45"; without the interval for a single seed.
std::string change_of(Cell cell, Cell base, const Column& column) {
  const MeanInterval change = paired_change_percent(values_of(cell, column.measure), values_of(base, column.measure));
  std::string text = fmt::format("{:+.{}f}", change.mean, column.decimals);
  if (change.half_width) text += fmt::format(" +- {:.{}f}", *change.half_width, column.decimals);
  return text;
}

// Table is rows of texts, the first column to the left and the others to the right.
class Table {
 public:
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }

  [[nodiscard]] std::string text() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_) {
      widths.resize(std::max(widths.size(), row.size()));
      for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
    }
    std::string all;
    for (const auto& row : rows_) {
      std::string line;
      for (std::size_t i = 0; i < row.size(); ++i) {
        line += i == 0 ? fmt::format("{:<{}}", row[i], widths[i]) : fmt::format("  {:>{}}", row[i], widths[i]);
      }
      line.erase(line.find_last_not_of(' ') + 1);
      all += line + "\n";
    }
    return all;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

bool any_non_stationary(std::span<const Run> runs) {
  return std::ranges::any_of(runs, [](const Run& run) { return run.result.non_stationary; });
}

// The runs of one size and load, told policy by policy.
class Block {
 public:
  Block(std::span<const Run> runs, std::size_t seeds) : runs_{runs}, seeds_{seeds} {
    for (std::size_t i = 0; i < runs.size(); i += seeds) {
      if (runs[i].policy == "least_tokens") base_ = i;
    }
  }

  [[nodiscard]] std::string text(bool timings) const {
    Table table;
    table.add(titles(timings));
    for (std::size_t i = 0; i < runs_.size(); i += seeds_) table.add(row(i, timings));
    return table.text();
  }

  [[nodiscard]] std::string_view base() const { return runs_[base_].policy; }

 private:
  [[nodiscard]] Cell cell(std::size_t start) const { return runs_.subspan(start, seeds_); }

  [[nodiscard]] static std::vector<std::string> titles(bool timings) {
    std::vector<std::string> row{"policy"};
    for (const Column& column : kColumns) row.emplace_back(column.title);
    for (const Column& column : kChanges) row.emplace_back(column.title);
    if (timings) row.emplace_back("took s");
    return row;
  }

  [[nodiscard]] std::vector<std::string> row(std::size_t start, bool timings) const {
    const Cell ours = cell(start);
    std::vector<std::string> row{ours.front().policy + (any_non_stationary(ours) ? " *" : "")};
    for (const Column& column : kColumns) row.push_back(mean_of(ours, column));
    for (const Column& column : kChanges) row.push_back(start == base_ ? "" : change_of(ours, cell(base_), column));
    if (timings) row.push_back(fmt::format("{:.2f}", seconds(ours)));
    return row;
  }

  [[nodiscard]] static double seconds(Cell runs) {
    return std::accumulate(runs.begin(), runs.end(), 0.0,
                           [](double sum, const Run& run) { return sum + run.took.count(); });
  }

  std::span<const Run> runs_;
  std::size_t seeds_;
  std::size_t base_ = 0;
};

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

}  // namespace

std::string table_report(const Experiment& experiment, std::span<const Run> runs) {
  const SimulateParams& params = experiment.params();
  const std::size_t seeds = params.seeds.size();
  const std::size_t block_size = params.policies.size() * seeds;
  std::string text = heading(experiment);
  for (std::size_t i = 0; i < runs.size(); i += block_size) {
    const Block block{runs.subspan(i, block_size), seeds};
    text +=
        fmt::format("\n{} of {} workers with {} slots, load {}, {}; changes against {}\n",
                    params.groups == 1 ? "1 group" : fmt::format("{} groups", params.groups), runs[i].workers,
                    params.slots, runs[i].load, seeds == 1 ? "1 seed" : fmt::format("{} seeds", seeds), block.base());
    text += block.text(params.timings);
  }
  if (seeds > 1) text += "\n+- is half of a 95 % interval of the difference on the same requests.\n";
  if (any_non_stationary(runs)) {
    text +=
        "\n* not stationary: active sequences differ by more than 5 % between the halves of the measured window,\n"
        "  which supports no claim. A longer run (--repeat) may cure it.\n";
  }
  return text;
}

}  // namespace balanceroute::sim
