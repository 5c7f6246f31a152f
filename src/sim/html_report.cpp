// html_report.cpp - the results of an experiment as one page.
#include <fmt/format.h>

#include "sim/comparison.hpp"
#include "sim/html/block_parts.hpp"
#include "sim/html/markup.hpp"
#include "sim/html/page.hpp"
#include "sim/html/sections.hpp"
#include "sim/report.hpp"

namespace balanceroute::sim {
namespace {

std::string block_id(const Block& block) {
  return fmt::format("workers-{}-load-{}", block.workers(), block.load());
}

std::string block_title(const Block& block) {
  return fmt::format("{} workers, load {}", block.workers(), block.load());
}

std::string step_time_text(const SimulateParams& params) {
  if (!params.step_time_table.empty()) return "as measured in " + html::escaped(params.step_time_table);
  const StepTime line = params.step_time.line();
  return fmt::format("{} ms and {} ms more for each thousand tokens that it reads", line.fixed_ms,
                     html::short_number(1e3 * line.per_token_ms));
}

std::string introduction(const Experiment& experiment) {
  const SimulateParams& params = experiment.params();
  const trace::LengthStatistics& lengths = experiment.lengths();
  const std::string played = params.repeat > 1 ? fmt::format(", played {} times in drawn orders", params.repeat) : "";
  return fmt::format(
      "<h1>Routing simulated on {}</h1>\n<p>{} requests{}; mean prompt {} tokens, mean output {} tokens, mean load of "
      "a "
      "busy slot {} tokens. Workers of a group step together: a step lasts as long as its most loaded worker needs, "
      "{}. "
      "Each worker has {} slots. Policies of one seed see the same requests at the same times.</p>\n",
      html::escaped(experiment.trace().name), lengths.requests, played, html::short_number(lengths.mean_prompt),
      html::short_number(lengths.mean_output), html::short_number(lengths.busy_slot_weight), step_time_text(params),
      params.slots);
}

std::string warning(std::span<const Run> runs) {
  if (!any_non_stationary(runs)) return {};
  return "<p class=\"warning\">* Not stationary: active sequences differ by more than 5 % between the halves of the "
         "measured window, which supports no claim. A longer run (<code>--repeat</code>) may cure it.</p>\n";
}

std::string contents(std::span<const Block> blocks, bool sweeps) {
  if (blocks.size() == 1) return {};
  std::string text = "<nav aria-label=\"Contents\"><ul>\n";
  if (sweeps) text += "<li><a href=\"#sweeps\">Across sizes and loads</a></li>\n";
  for (const Block& block : blocks) {
    text += fmt::format("<li><a href=\"#{}\">{}</a></li>\n", block_id(block), block_title(block));
  }
  return text + "</ul></nav>\n";
}

std::string block_section(const Experiment& experiment, const Block& block) {
  return fmt::format("<section id=\"{}\">\n<h2>{}</h2>\n{}<h3>Time lost at the barrier</h3>\n{}{}{}{}</section>\n",
                     block_id(block), block_title(block), html::comparison_table(experiment, block),
                     html::idle_bars(experiment, block), html::trajectory_panels(experiment, block),
                     html::curves(experiment, block), html::lengths_tables(experiment, block));
}

}  // namespace

std::string html_report(const Experiment& experiment, std::span<const Run> runs) {
  const std::vector<Block> blocks = blocks_of(experiment, runs);
  const std::string sweeps = html::sweep_section(experiment, blocks);
  std::string body = introduction(experiment) + warning(runs) + contents(blocks, !sweeps.empty()) + sweeps;
  for (const Block& block : blocks) body += block_section(experiment, block);
  body += html::reference_section(experiment);
  return html::page("Routing simulated on " + experiment.trace().name, body);
}

}  // namespace balanceroute::sim
