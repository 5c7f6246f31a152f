// comparison_section.cpp - one size and load: the table of figures, the time lost at the barrier, and who pays.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "sim/html/block_parts.hpp"
#include "sim/html/markup.hpp"
#include "sim/html/sections.hpp"

namespace balanceroute::sim::html {
namespace {

enum class Better : std::uint8_t { less, more };

struct Figure {
  std::string_view title;
  Better better;
  Measure measure;
};

constexpr std::array kFigures{
    Figure{"output tokens/s", Better::more, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    Figure{"share of the bound, %", Better::more, [](const RunResult& r) { return 100 * r.bound_share; }},
    Figure{"step, ms", Better::less, [](const RunResult& r) { return r.step_ms_mean; }},
    Figure{"spread, tokens", Better::less, [](const RunResult& r) { return r.spread_mean_tokens; }},
    Figure{"slots busy, %", Better::more, [](const RunResult& r) { return 100 * r.busy_fraction; }},
    Figure{"TPOT mean, ms", Better::less, [](const RunResult& r) { return r.tpot_ms.mean; }},
    Figure{"TPOT P95, ms", Better::less, [](const RunResult& r) { return r.tpot_ms.p95; }},
    Figure{"TTFT P95, ms", Better::less, [](const RunResult& r) { return r.ttft_ms.p95; }},
    Figure{"wait P99, ms", Better::less, [](const RunResult& r) { return r.pool_wait_ms.p99; }},
    Figure{"energy, J/token", Better::less, [](const RunResult& r) { return r.energy_joule_per_token; }},
};

constexpr std::array kChanges{
    Figure{"tokens/s, change %", Better::more, [](const RunResult& r) { return r.throughput_tokens_per_s; }},
    Figure{"TPOT, change %", Better::less, [](const RunResult& r) { return r.tpot_ms.mean; }},
};

std::string name_of(const Experiment& experiment, const Block& block, std::size_t variant) {
  return escaped(experiment.variants()[variant].label) + (any_non_stationary(block.cell(variant)) ? " *" : "");
}

// The variant with the best mean.
std::size_t best_at(const Experiment& experiment, const Block& block, const Figure& figure) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < experiment.variants().size(); ++i) {
    const double ours = mean_of(block.cell(i), figure.measure).mean;
    const double theirs = mean_of(block.cell(best), figure.measure).mean;
    if (figure.better == Better::less ? ours < theirs : ours > theirs) best = i;
  }
  return best;
}

std::string distributions(const Experiment& experiment, const Block& block) {
  struct Named {
    std::string_view title;
    Summary RunResult::* of;
  };
  Table table{.caption = "Times in ms, means over seeds", .head = {"policy"}, .rows = {}};
  constexpr std::array kTimes{Named{"TPOT", &RunResult::tpot_ms}, Named{"TTFT", &RunResult::ttft_ms},
                              Named{"wait", &RunResult::pool_wait_ms}};
  for (const Named& time : kTimes) {
    for (const std::string_view figure : {"mean", "P50", "P95", "P99", "max"}) {
      table.head.push_back(fmt::format("{} {}", time.title, figure));
    }
  }
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    std::vector<std::string> row{name_of(experiment, block, variant)};
    for (const Named& time : kTimes) {
      for (double Summary::* figure : {&Summary::mean, &Summary::p50, &Summary::p95, &Summary::p99, &Summary::max}) {
        row.push_back(
            short_number(seeds_mean(block.cell(variant), [&](const RunResult& r) { return r.*time.of.*figure; })));
      }
    }
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

struct Division {
  std::string_view title;
  const LengthBucketEnds& ends;
  ValuesByLength::ByBucket RunResult::* tpot;
  ValuesByLength::ByBucket RunResult::* wait;
};

std::string bucket_title(const LengthBucketEnds& ends, std::size_t bucket) {
  return bucket < ends.size() ? fmt::format("to {}", ends[bucket].count())
                              : fmt::format("above {}", ends.back().count());
}

std::string by_length(const Experiment& experiment, const Block& block, const Division& division) {
  Table table{.caption = fmt::format("By {} tokens: mean wait / P99 of waits / mean TPOT, ms", division.title),
              .head = {"policy"},
              .rows = {}};
  for (std::size_t bucket = 0; bucket < kLengthBuckets; ++bucket) {
    table.head.push_back(bucket_title(division.ends, bucket));
  }
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    std::vector<std::string> row{name_of(experiment, block, variant)};
    for (std::size_t bucket = 0; bucket < kLengthBuckets; ++bucket) {
      const auto mean = [&](const auto& buckets, double Summary::* figure) {
        return seeds_mean(block.cell(variant), [&](const RunResult& r) { return (r.*buckets)[bucket].*figure; });
      };
      const double requests = seeds_mean(block.cell(variant), [&](const RunResult& r) {
        return static_cast<double>((r.*division.wait)[bucket].count);
      });
      row.push_back(requests == 0 ? "–"
                                  : fmt::format("{:.0f} / {:.0f} / {}", mean(division.wait, &Summary::mean),
                                                mean(division.wait, &Summary::p99),
                                                short_number(mean(division.tpot, &Summary::mean))));
    }
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

}  // namespace

std::string comparison_table(const Experiment& experiment, const Block& block) {
  const std::string base = experiment.variants()[block.base()].label;
  Table table{
      .caption = fmt::format("Means over {} seed{}; changes against {}; the best mean is in bold",
                             experiment.params().seeds.size(), experiment.params().seeds.size() == 1 ? "" : "s", base),
      .head = {"policy"},
      .rows = {}};
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    table.rows.push_back({name_of(experiment, block, variant)});
  }
  for (const Figure& figure : kChanges) {
    table.head.emplace_back(figure.title);
    for (std::size_t variant = 0; variant < table.rows.size(); ++variant) {
      table.rows[variant].push_back(
          variant == block.base()
              ? "–"
              : change_text(change_of(block.cell(variant), block.cell(block.base()), figure.measure)));
    }
  }
  for (const Figure& figure : kFigures) {
    table.head.emplace_back(figure.title);
    const std::size_t best = best_at(experiment, block, figure);
    for (std::size_t variant = 0; variant < table.rows.size(); ++variant) {
      const std::string text = short_number(mean_of(block.cell(variant), figure.measure).mean);
      table.rows[variant].push_back(variant == best ? "<b>" + text + "</b>" : text);
    }
  }
  return table.html();
}

std::string idle_bars(const Experiment& experiment, const Block& block) {
  constexpr std::array<Measure, 2> kShares{[](const RunResult& r) { return 100 * r.barrier_idle_fraction; },
                                           [](const RunResult& r) { return 100 * r.load_idle_fraction; }};
  double largest = 0;
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    for (const Measure share : kShares) largest = std::max(largest, mean_of(block.cell(variant), share).mean);
  }
  Table table{.caption = "Share lost to waiting for the most loaded worker, %; one scale for all bars",
              .head = {"policy", "worker time (modelled)", "", "load", ""},
              .rows = {}};
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    std::vector<std::string> row{name_of(experiment, block, variant)};
    for (const Measure share : kShares) {
      const MeanInterval value = mean_of(block.cell(variant), share);
      row.push_back(interval_text(value));
      row.push_back(fmt::format("<span class=\"bar\" style=\"width:{:.1f}%\"></span>",
                                largest > 0 ? 100 * value.mean / largest : 0));
    }
    table.rows.push_back(std::move(row));
  }
  return "<div class=\"bars\">" + table.html() + "</div>\n";
}

std::string lengths_tables(const Experiment& experiment, const Block& block) {
  return details("Distributions of times", distributions(experiment, block)) +
         details(
             "Who pays: times by length of prompt and output",
             by_length(experiment, block,
                       {"prompt", kPromptBucketEnds, &RunResult::tpot_by_prompt_ms, &RunResult::wait_by_prompt_ms}) +
                 by_length(
                     experiment, block,
                     {"output", kOutputBucketEnds, &RunResult::tpot_by_output_ms, &RunResult::wait_by_output_ms}));
}

}  // namespace balanceroute::sim::html
