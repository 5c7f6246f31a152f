// trajectory_section.cpp - one size and load over time: the loads of all workers, step time and imbalance.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>

#include "core/envelope.hpp"
#include "sim/html/block_parts.hpp"
#include "sim/html/chart.hpp"
#include "sim/html/markup.hpp"
#include "sim/html/sections.hpp"

namespace balanceroute::sim::html {
namespace {

using Point = Trajectory::Point;

// More workers than this are drawn as a selection; what the band and the envelope show is of all.
constexpr std::size_t kMostWorkerLines = 32;

// The trajectory of the variant's first seed; null if none was recorded.
const Trajectory* trajectory_of(const Block& block, std::size_t variant) {
  const Run& run = block.cell(variant).front();
  return run.trajectory && !run.trajectory->points.empty() ? &*run.trajectory : nullptr;
}

double seconds_since(const Trajectory& trajectory, const Point& point) {
  return std::chrono::duration<double>{point.start - trajectory.points.front().start}.count();
}

double mean_load(const Point& point) {
  return static_cast<double>(total_load(point.loads).count()) / static_cast<double>(point.loads.size());
}

double envelope(const Point& point) {
  return static_cast<double>(largest_load(point.loads).count());
}

double least_load(const Point& point) {
  return static_cast<double>(std::ranges::min(point.loads).count());
}

std::vector<ChartPoint> over_time(const Trajectory& trajectory, const std::function<double(const Point&)>& value) {
  std::vector<ChartPoint> points;
  for (const Point& point : trajectory.points) {
    points.push_back({.x = seconds_since(trajectory, point), .y = value(point)});
  }
  return points;
}

// One pair of scales for all that a block draws of its points.
struct Frame {
  Scale time;
  Scale value;
};

// From the least least(point) to the greatest greatest(point) of all variants.
template <class Least, class Greatest>
Frame frame_of(const Experiment& experiment, const Block& block, const Least& least, const Greatest& greatest) {
  double longest = 0;
  double low = std::numeric_limits<double>::max();
  double high = 0;
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    const Trajectory* trajectory = trajectory_of(block, variant);
    if (trajectory == nullptr) continue;
    longest = std::max(longest, seconds_since(*trajectory, trajectory->points.back()));
    for (const Point& point : trajectory->points) {
      low = std::min(low, least(point));
      high = std::max(high, greatest(point));
    }
  }
  return {.time = time_scale(longest), .value = round_scale(low, high)};
}

std::string panel(const std::string& label, const Trajectory& trajectory, const Frame& frame) {
  const auto mean = over_time(trajectory, mean_load);
  const auto largest = over_time(trajectory, envelope);
  LineChart chart{.title = label,
                  .description = fmt::format("Loads of {} workers over {} s: the largest, their mean, and each.",
                                             trajectory.points.front().loads.size(), short_number(mean.back().x)),
                  .x_title = "simulated time, s",
                  .y_title = "load, tokens read a step",
                  .x = frame.time,
                  .y = frame.value,
                  .bands = {{.style = "waiting", .lower = mean, .upper = largest}},
                  .lines = {}};
  const std::size_t workers = trajectory.points.front().loads.size();
  const std::size_t stride = (workers + kMostWorkerLines - 1) / kMostWorkerLines;
  for (std::size_t worker = 0; worker < workers; worker += stride) {
    chart.lines.push_back({.name = fmt::format("worker {}", worker),
                           .style = "worker",
                           .points = over_time(trajectory, [worker](const Point& point) {
                             return static_cast<double>(point.loads[worker].count());
                           })});
  }
  chart.lines.push_back({.name = "mean", .style = "mean", .points = mean});
  chart.lines.push_back({.name = "largest load", .style = "envelope", .points = largest});
  return chart.html();
}

std::string panel_table(const std::string& label, const Trajectory& trajectory) {
  constexpr std::size_t kRows = 10;
  Table table{.caption = label + ": loads in tokens", .head = {"time, s", "largest", "mean", "least"}, .rows = {}};
  const std::size_t stride = std::max<std::size_t>(1, trajectory.points.size() / kRows);
  for (std::size_t i = 0; i < trajectory.points.size(); i += stride) {
    const Point& point = trajectory.points[i];
    table.rows.push_back({short_number(seconds_since(trajectory, point)), short_number(envelope(point)),
                          short_number(mean_load(point)), short_number(least_load(point))});
  }
  return table.html();
}

std::string curve(const Experiment& experiment, const Block& block, LineChart chart, double Point::* member) {
  const auto value = [member](const Point& point) { return point.*member; };
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    const Trajectory* trajectory = trajectory_of(block, variant);
    if (trajectory == nullptr) continue;
    chart.lines.push_back({.name = experiment.variants()[variant].label,
                           .style = style_of(variant),
                           .points = over_time(*trajectory, value)});
  }
  if (chart.lines.empty()) return {};
  const Frame frame = frame_of(experiment, block, value, value);
  chart.x = frame.time;
  chart.y = frame.value;
  return chart.html();
}

}  // namespace

std::string trajectory_panels(const Experiment& experiment, const Block& block) {
  const Frame frame = frame_of(experiment, block, least_load, envelope);
  std::string panels;
  std::string tables;
  const Trajectory* first = nullptr;
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    const Trajectory* trajectory = trajectory_of(block, variant);
    if (trajectory == nullptr) continue;
    first = trajectory;
    panels += panel(experiment.variants()[variant].label, *trajectory, frame);
    tables += panel_table(experiment.variants()[variant].label, *trajectory);
  }
  if (first == nullptr) return {};
  const std::vector<Line> looks{{.name = "largest load: sets the step", .style = "envelope", .points = {}},
                                {.name = "mean load", .style = "mean", .points = {}},
                                {.name = "each worker", .style = "worker", .points = {}}};
  const std::size_t workers = first->points.front().loads.size();
  std::string note = "The shaded part between mean and largest load is what all workers wait for.";
  if (workers > kMostWorkerLines) {
    note += fmt::format(" Of {} workers {} are drawn one by one.", workers, kMostWorkerLines);
  }
  return fmt::format(
      "<h3>Loads of the workers</h3>\n<p class=\"note\">{} First seed{}; all panels have the same scales.</p>\n{}"
      "<div class=\"panels\">\n{}</div>\n{}",
      note, experiment.params().groups > 1 ? ", first group" : "", legend(looks), panels,
      details("Loads as tables", tables));
}

std::string curves(const Experiment& experiment, const Block& block) {
  std::vector<Line> looks;
  for (std::size_t variant = 0; variant < experiment.variants().size(); ++variant) {
    looks.push_back({.name = experiment.variants()[variant].label, .style = style_of(variant), .points = {}});
  }
  const std::string step_time =
      curve(experiment, block,
            {.title = "Step time",
             .description = "Mean length of a step over time, a line a policy; the table above has the means.",
             .x_title = "simulated time, s",
             .y_title = "step, ms"},
            &Point::step_ms);
  if (step_time.empty()) return {};
  return fmt::format("<h3>Step time and imbalance</h3>\n{}<div class=\"panels\">\n{}{}</div>\n", legend(looks),
                     step_time,
                     curve(experiment, block,
                           {.title = "Imbalance",
                            .description = "Workers times the largest load, less the sum of loads, over time.",
                            .x_title = "simulated time, s",
                            .y_title = "imbalance, tokens"},
                           &Point::imbalance));
}

}  // namespace balanceroute::sim::html
