// sweep_section.cpp - what changes with the number of workers, and with the load.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <limits>
#include <string_view>

#include "sim/html/block_parts.hpp"
#include "sim/html/chart.hpp"
#include "sim/html/markup.hpp"
#include "sim/html/sections.hpp"

namespace balanceroute::sim::html {
namespace {

// A figure drawn against what is swept.
struct Figure {
  std::string_view title;
  std::string_view unit;
  std::function<double(const Run&)> value;
};

// Blocks that differ only in what is swept.
struct Sweep {
  std::string title;    // of the section
  std::string x_title;  // with its unit
  std::vector<const Block*> blocks;
  std::function<double(const Block&)> x;
};

ChartPoint point_of(const Sweep& sweep, const Block& block, std::size_t variant, const Figure& figure) {
  std::vector<double> values;
  for (const Run& run : block.cell(variant)) values.push_back(figure.value(run));
  const MeanInterval mean = mean_interval(values);
  return {.x = sweep.x(block), .y = mean.mean, .half_width = mean.half_width.value_or(0)};
}

LineChart chart_of(const Experiment& experiment, const Sweep& sweep, const Figure& figure) {
  LineChart chart{.title = std::string{figure.title},
                  .description = fmt::format("{} against {}, a line a policy; the table below has the figures.",
                                             figure.title, sweep.x_title),
                  .x_title = sweep.x_title,
                  .y_title = std::string{figure.unit}};
  double low = std::numeric_limits<double>::max();
  double high = 0;
  std::vector<double> places;
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    Line line{.name = experiment.variants()[variant].label, .style = style_of(variant), .points = {}, .dots = true};
    for (const Block* block : sweep.blocks) line.points.push_back(point_of(sweep, *block, variant, figure));
    std::ranges::sort(line.points, {}, &ChartPoint::x);
    for (const ChartPoint& point : line.points) {
      low = std::min(low, point.y - point.half_width);
      high = std::max(high, point.y + point.half_width);
      places.push_back(point.x);
    }
    chart.lines.push_back(std::move(line));
  }
  chart.x = scale_of_values(places);
  chart.y = round_scale(std::max(low, 0.0), high);
  return chart;
}

std::string table_of(const Sweep& sweep, const LineChart& chart) {
  Table table{.caption = chart.title + ", " + chart.y_title, .head = {sweep.x_title}, .rows = {}};
  for (const Line& line : chart.lines) table.head.push_back(line.name);
  for (std::size_t i = 0; i < sweep.blocks.size(); ++i) {
    std::vector<std::string> row{short_number(chart.lines.front().points[i].x)};
    for (const Line& line : chart.lines) {
      const ChartPoint& point = line.points[i];
      const MeanInterval value{.mean = point.y,
                               .half_width = point.half_width > 0 ? std::optional{point.half_width} : std::nullopt};
      row.push_back(interval_text(value));
    }
    table.rows.push_back(std::move(row));
  }
  return table.html();
}

std::string section(const Experiment& experiment, const Sweep& sweep, std::span<const Figure> figures) {
  std::string charts;
  std::string tables;
  std::string looks;
  for (const Figure& figure : figures) {
    const LineChart chart = chart_of(experiment, sweep, figure);
    charts += chart.html();
    tables += table_of(sweep, chart);
    looks = legend(chart.lines);
  }
  return fmt::format("<h3>{}</h3>\n{}<div class=\"panels\">\n{}</div>\n{}", sweep.title, looks, charts,
                     details("As tables", tables));
}

std::string scale_up(const Experiment& experiment, std::span<const Block> blocks, double load) {
  Sweep sweep{.title = fmt::format("Scale-up at load {}", load),
              .x_title = "workers of a group",
              .blocks = {},
              .x = [](const Block& block) { return static_cast<double>(block.workers()); }};
  for (const Block& block : blocks) {
    if (block.load() == load) sweep.blocks.push_back(&block);
  }
  const auto groups = static_cast<double>(experiment.params().groups);
  const std::array figures{
      Figure{"Throughput of a worker", "output tokens/s",
             [groups](const Run& run) {
               return run.result.throughput_tokens_per_s / (groups * static_cast<double>(run.workers));
             }},
      Figure{"Worker time lost at the barrier (modelled)", "%",
             [](const Run& run) { return 100 * run.result.barrier_idle_fraction; }},
      Figure{"Spread of loads", "tokens", [](const Run& run) { return run.result.spread_mean_tokens; }},
      Figure{"P95 of TPOT", "ms", [](const Run& run) { return run.result.tpot_ms.p95; }},
  };
  return section(experiment, sweep, figures);
}

std::string by_load(const Experiment& experiment, std::span<const Block> blocks, std::size_t workers) {
  Sweep sweep{.title = fmt::format("Load curve of {} workers", workers),
              .x_title = "load, of what a balanced fleet finishes",
              .blocks = {},
              .x = [](const Block& block) { return block.load(); }};
  for (const Block& block : blocks) {
    if (block.workers() == workers) sweep.blocks.push_back(&block);
  }
  const std::array figures{
      Figure{"Throughput", "output tokens/s", [](const Run& run) { return run.result.throughput_tokens_per_s; }},
      Figure{"P95 of TPOT", "ms", [](const Run& run) { return run.result.tpot_ms.p95; }},
      Figure{"Step time", "ms", [](const Run& run) { return run.result.step_ms_mean; }},
      Figure{"P99 of waits", "ms", [](const Run& run) { return run.result.pool_wait_ms.p99; }},
  };
  return section(experiment, sweep, figures);
}

}  // namespace

std::string sweep_section(const Experiment& experiment, std::span<const Block> blocks) {
  const SimulateParams& params = experiment.params();
  std::string text;
  if (params.workers.size() > 1) {
    for (const double load : params.loads) text += scale_up(experiment, blocks, load);
  }
  if (params.loads.size() > 1) {
    for (const std::int64_t workers : params.workers) {
      text += by_load(experiment, blocks, static_cast<std::size_t>(workers));
    }
  }
  return text.empty() ? text : "<section id=\"sweeps\"><h2>Across sizes and loads</h2>\n" + text + "</section>\n";
}

}  // namespace balanceroute::sim::html
