// demo_report.cpp - the results of a demo for programs (JSON), for a terminal (table) and for a browser (page).
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/demo.hpp"

namespace balanceroute::cli {

namespace {

const DemoRun* find_run(const std::vector<DemoRun>& runs, std::string_view policy) {
  const auto found = std::ranges::find(runs, policy, &DemoRun::policy);
  return found == runs.end() ? nullptr : &*found;
}

// One sentence on what the best of the counting routers loses against br_0.
std::string verdict(const std::vector<DemoRun>& runs) {
  const DemoRun* counting = find_run(runs, "join_shortest_queue");
  const DemoRun* balanced = find_run(runs, "br_0");
  if (counting == nullptr || balanced == nullptr || counting->engines.tokens_per_s <= 0) return {};
  return fmt::format(
      "br_0 against join_shortest_queue: {:+.1f} % tokens a second, load idle {:.1f} % instead of {:.1f} %.",
      100 * (balanced->engines.tokens_per_s / counting->engines.tokens_per_s - 1),
      100 * balanced->engines.load_idle_fraction, 100 * counting->engines.load_idle_fraction);
}

std::string bar(double share, double largest) {
  const double width = largest > 0 ? 100 * share / largest : 0;
  return fmt::format(R"(<span class="bar"><span style="width:{:.1f}%"></span></span> {:.1f} %)", width, 100 * share);
}

constexpr std::string_view kPage = R"(<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">
<title>BalanceRoute demo</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }}
body {{ max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }}
.scroll {{ overflow-x: auto; }}
table {{ border-collapse: collapse; width: 100%; }}
th, td {{ text-align: right; padding: .35rem .6rem; border-bottom: 1px solid #8884; }}
td {{ white-space: nowrap; }}
th:first-child, td:first-child {{ text-align: left; }}
.bar {{ display: inline-block; width: 4rem; height: .7rem; background: #8883; text-align: left; }}
.bar span {{ display: block; height: 100%; background: #c2410c; }}
</style></head><body>
<h1>What each policy cost at the barrier</h1>
<p>{workers} decode workers with {slots} slots each step together: a step lasts {fixed} ms plus {per_token} ms for each
token its most loaded worker reads. The same {requests} requests of a real trace (Azure 2023, conversation) arrived over
HTTP at {load} times what a perfectly balanced fleet finishes. The figures are the emulated engines' own.</p>
<p><strong>{verdict}</strong></p>
<div class="scroll"><table>
<thead><tr><th>policy</th><th>worker time lost at the barrier</th><th>load idle</th><th>tokens/s</th><th>TPOT P95, ms</th>
<th>TTFT P95, ms</th><th>mean spread, tokens</th><th>errors</th><th>late steps</th></tr></thead>
<tbody>
{rows}</tbody></table></div>
<p>Worker time lost: the share of all workers' time spent waiting for the most loaded one. Load idle: the same in tokens,
without the fixed part of a step. Spread: largest less smallest load. Late steps: steps that this machine ended late; above
5 % the run says nothing.</p>
</body></html>
)";

}  // namespace

std::string demo_json(const std::vector<DemoRun>& runs) {
  nlohmann::ordered_json out;
  out["runs"] = nlohmann::ordered_json::array();
  for (const DemoRun& run : runs) {
    nlohmann::ordered_json entry;
    entry["policy"] = run.policy;
    entry.update(nlohmann::ordered_json::parse(replay::to_json(run.clients)));
    entry["barrier_idle_fraction"] = run.engines.barrier_idle_fraction;
    entry["load_idle_fraction"] = run.engines.load_idle_fraction;
    entry["spread_mean_tokens"] = run.engines.spread_mean_tokens;
    entry["late_steps_fraction"] = run.engines.late_steps_fraction;
    entry["engine_steps"] = run.engines.steps;
    entry["engine_tokens_per_s"] = run.engines.tokens_per_s;
    out["runs"].push_back(std::move(entry));
  }
  return out.dump(2) + "\n";
}

std::string demo_table(const std::vector<DemoRun>& runs) {
  std::string out = fmt::format("{:<20} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7}\n", "policy", "barrier",
                                "load", "tokens/s", "TPOT P95", "TTFT P95", "spread", "errors", "late");
  out += fmt::format("{:<20} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7}\n", "", "idle %", "idle %", "", "ms",
                     "ms", "tokens", "", "steps %");
  for (const DemoRun& run : runs) {
    out += fmt::format("{:<20} {:>9.1f} {:>9.1f} {:>9.0f} {:>10.1f} {:>10.0f} {:>9.0f} {:>7} {:>7.1f}\n", run.policy,
                       100 * run.engines.barrier_idle_fraction, 100 * run.engines.load_idle_fraction,
                       run.engines.tokens_per_s, run.clients.tpot_ms.p95, run.clients.ttft_ms.p95,
                       run.engines.spread_mean_tokens, run.clients.errors, 100 * run.engines.late_steps_fraction);
  }
  return out + verdict(runs) + "\n";
}

std::string demo_html(const DemoParams& params, const std::vector<DemoRun>& runs) {
  double largest_barrier = 0;
  double largest_load = 0;
  for (const DemoRun& run : runs) {
    largest_barrier = std::max(largest_barrier, run.engines.barrier_idle_fraction);
    largest_load = std::max(largest_load, run.engines.load_idle_fraction);
  }
  std::string rows;
  for (const DemoRun& run : runs) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{:.0f}</td><td>{:.1f}</td><td>{:.0f}</td><td>{:.0f}</td>"
        "<td>{}</td><td>{:.1f} %</td></tr>\n",
        run.policy, bar(run.engines.barrier_idle_fraction, largest_barrier),
        bar(run.engines.load_idle_fraction, largest_load), run.engines.tokens_per_s, run.clients.tpot_ms.p95,
        run.clients.ttft_ms.p95, run.engines.spread_mean_tokens, run.clients.errors,
        100 * run.engines.late_steps_fraction);
  }
  return fmt::format(kPage, fmt::arg("workers", params.workers), fmt::arg("slots", params.slots),
                     fmt::arg("fixed", params.fixed_ms), fmt::arg("per_token", params.per_token_ms),
                     fmt::arg("requests", runs.empty() ? 0 : runs.front().clients.requests),
                     fmt::arg("load", params.load), fmt::arg("verdict", verdict(runs)), fmt::arg("rows", rows));
}

}  // namespace balanceroute::cli
