// demo_report.cpp - the results of a demo for programs (JSON), for a terminal (table) and for a browser (page).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>
#include <numeric>
#include <span>
#include <utility>

#include "cli/demo.hpp"

namespace balanceroute::cli {

namespace {

// The runs of one kind of fleet.
using Part = std::span<const DemoRun>;

std::vector<Part> parts_of(const std::vector<DemoRun>& runs) {
  std::vector<Part> parts;
  for (auto from = runs.begin(); from != runs.end();) {
    const auto to =
        std::find_if(from, runs.end(), [&](const DemoRun& run) { return run.setup.dialect != from->setup.dialect; });
    parts.emplace_back(from, to);
    from = to;
  }
  return parts;
}

std::string title_of(Part part) {
  const DemoSetup& setup = part.front().setup;
  return setup.has_prefill() ? fmt::format("prefill engines apart ({})", setup.dialect) : "prefill and decode together";
}

const DemoRun* find_run(Part part, std::string_view policy) {
  const auto found = std::ranges::find(part, policy, [](const DemoRun& run) { return run.setup.policy; });
  return found == part.end() ? nullptr : &*found;
}

// One sentence on what a router that counts requests loses against one that balances loads.
std::string verdict(Part part) {
  const DemoRun* counting = find_run(part, "join_shortest_queue");
  const DemoRun* balanced = find_run(part, "br_fit");
  if (counting == nullptr || balanced == nullptr || counting->engines.tokens_per_s <= 0) return {};
  return fmt::format(
      "{}: br_fit against join_shortest_queue: {:+.1f} % tokens a second, load idle {:.1f} % instead of {:.1f} %.",
      title_of(part), 100 * (balanced->engines.tokens_per_s / counting->engines.tokens_per_s - 1),
      100 * balanced->engines.load_idle_fraction, 100 * counting->engines.load_idle_fraction);
}

// One figure of a run, live and simulated.
struct Compared {
  std::string_view name;
  std::string_view title;
  double EngineMeasures::* figure;
  double scale;
  int digits;
};

constexpr std::array<Compared, 3> kCompared{
    {{"barrier_idle_fraction", "barrier idle %", &EngineMeasures::barrier_idle_fraction, 100, 1},
     {"load_idle_fraction", "load idle %", &EngineMeasures::load_idle_fraction, 100, 1},
     {"tokens_per_s", "tokens/s", &EngineMeasures::tokens_per_s, 1, 0}}};
// Live and simulated figures that differ by less agree.
constexpr double kAgreement = 0.1;

// What the simulated starts say of one figure.
struct Simulated {
  double mean = 0;
  double lowest = 0;
  double highest = 0;
};

Simulated simulated(const DemoRun& run, const Compared& compared) {
  std::vector<double> values;
  for (const EngineMeasures& start : run.forecast.starts) values.push_back(start.*compared.figure);
  if (values.empty()) return {};
  const auto [lowest, highest] = std::ranges::minmax(values);
  return {.mean = std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size()),
          .lowest = lowest,
          .highest = highest};
}

// Live less simulated, as a share of simulated.
double difference(const DemoRun& run, const Compared& compared) {
  const double mean = simulated(run, compared).mean;
  return mean > 0 ? run.engines.*compared.figure / mean - 1 : 0;
}

bool agrees(const DemoRun& run, const Compared& compared) {
  return std::abs(difference(run, compared)) <= kAgreement;
}

std::string live_and_simulated(const DemoRun& run, const Compared& compared) {
  return fmt::format("{:.{}f} / {:.{}f} ({:+.0f} %)", compared.scale * run.engines.*compared.figure, compared.digits,
                     compared.scale * simulated(run, compared).mean, compared.digits, 100 * difference(run, compared));
}

// Why a figure may differ.
std::string reason(const DemoRun& run, const Compared& compared) {
  const Simulated said = simulated(run, compared);
  const double live = run.engines.*compared.figure;
  if (live >= said.lowest && live <= said.highest) {
    return fmt::format("within the {:.{}f}..{:.{}f} of {} simulated starts: what happened to run at the beginning",
                       compared.scale * said.lowest, compared.digits, compared.scale * said.highest, compared.digits,
                       run.forecast.starts.size());
  }
  if (run.engines.late_steps_fraction > 0) {
    return fmt::format("{:.1f} % of the live steps ended late on this machine, the simulated ones never do",
                       100 * run.engines.late_steps_fraction);
  }
  return "beyond what the simulated starts differ by, and no step was late";
}

// More late steps than that, and a run's times and throughput are the machine's.
constexpr double kMostLateSteps = 0.05;

std::string lateness(const std::vector<DemoRun>& runs) {
  const auto late =
      std::ranges::count_if(runs, [](const DemoRun& run) { return run.engines.late_steps_fraction > kMostLateSteps; });
  if (late == 0) return {};
  return fmt::format(
      "In {} of {} runs more than {:.0f} % of the steps ended late: their times and tokens/s are this "
      "machine's and say nothing of the policies.\n",
      late, runs.size(), 100 * kMostLateSteps);
}

std::string table_row(const DemoRun& run) {
  return fmt::format("  {:<20} {:>7.1f} {:>9.1f} {:>9.0f} {:>10.1f} {:>10.0f} {:>9.0f} {:>7} {:>7.1f}\n",
                     run.setup.policy, 100 * run.engines.barrier_idle_fraction, 100 * run.engines.load_idle_fraction,
                     run.engines.tokens_per_s, run.clients.tpot_ms.p95, run.clients.ttft_ms.p95,
                     run.engines.spread_mean_tokens, run.clients.errors, 100 * run.engines.late_steps_fraction);
}

std::string bar(double share, double largest, double simulated_share) {
  const double width = largest > 0 ? 100 * share / largest : 0;
  return fmt::format(R"(<span class="bar"><span style="width:{:.1f}%"></span></span> {:.1f} % ({:.1f} %))", width,
                     100 * share, 100 * simulated_share);
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
HTTP at {load} times what a perfectly balanced fleet finishes. The figures are the emulated engines' own, those in
parentheses what the simulator says of the same requests.</p>
<p><strong>{verdict}</strong></p>
<div class="scroll"><table>
<thead><tr><th>policy</th><th>prefill and decode</th><th>worker time lost at the barrier</th><th>load idle</th><th>tokens/s</th><th>TPOT P95, ms</th>
<th>TTFT P95, ms</th><th>mean spread, tokens</th><th>errors</th><th>late steps</th></tr></thead>
<tbody>
{rows}</tbody></table></div>
<p>Worker time lost: the share of all workers' time spent waiting for the most loaded one. Load idle: the same in tokens,
without the fixed part of a step. Spread: largest less smallest load. Late steps: steps that this machine ended late; above
5 % the run says nothing.</p>
</body></html>
)";

nlohmann::ordered_json simulated_json(const DemoRun& run) {
  nlohmann::ordered_json out;
  for (const Compared& compared : kCompared) {
    const Simulated said = simulated(run, compared);
    out[std::string{compared.name}] = {{"mean", said.mean}, {"lowest", said.lowest}, {"highest", said.highest}};
  }
  return out;
}

}  // namespace

std::string demo_json(const std::vector<DemoRun>& runs) {
  nlohmann::ordered_json out;
  out["runs"] = nlohmann::ordered_json::array();
  for (const DemoRun& run : runs) {
    nlohmann::ordered_json entry;
    entry["dialect"] = run.setup.dialect;
    entry["policy"] = run.setup.policy;
    entry.update(nlohmann::ordered_json::parse(replay::to_json(run.clients)));
    entry["barrier_idle_fraction"] = run.engines.barrier_idle_fraction;
    entry["load_idle_fraction"] = run.engines.load_idle_fraction;
    entry["spread_mean_tokens"] = run.engines.spread_mean_tokens;
    entry["late_steps_fraction"] = run.engines.late_steps_fraction;
    entry["engine_steps"] = run.engines.steps;
    entry["engine_tokens_per_s"] = run.engines.tokens_per_s;
    entry["simulated"] = simulated_json(run);
    out["runs"].push_back(std::move(entry));
  }
  return out.dump(2) + "\n";
}

std::string demo_table(const std::vector<DemoRun>& runs) {
  std::string out = fmt::format("{:<20} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7}\n", "policy", "barrier",
                                "load", "tokens/s", "TPOT P95", "TTFT P95", "spread", "errors", "late");
  out += fmt::format("{:<20} {:>9} {:>9} {:>9} {:>10} {:>10} {:>9} {:>7} {:>7}\n", "", "idle %", "idle %", "", "ms",
                     "ms", "tokens", "", "steps %");
  std::string verdicts;
  for (const Part part : parts_of(runs)) {
    out += title_of(part) + "\n";
    for (const DemoRun& run : part) out += table_row(run);
    if (const std::string said = verdict(part); !said.empty()) verdicts += said + "\n";
  }
  return out + verdicts + lateness(runs);
}

std::string demo_comparison(const std::vector<DemoRun>& runs) {
  std::string out = fmt::format("{:<20}", "live / simulated");
  for (const Compared& compared : kCompared) out += fmt::format(" {:>24}", compared.title);
  out += '\n';
  std::string apart;
  for (const Part part : parts_of(runs)) {
    out += title_of(part) + "\n";
    for (const DemoRun& run : part) {
      out += fmt::format("  {:<18}", run.setup.policy);
      for (const Compared& compared : kCompared) {
        out += fmt::format(" {:>24}", live_and_simulated(run, compared));
        if (agrees(run, compared)) continue;
        apart +=
            fmt::format("  {}, {}, {}: {}\n", title_of(part), run.setup.policy, compared.title, reason(run, compared));
      }
      out += '\n';
    }
  }
  if (apart.empty()) return out + "Every figure agrees with the simulator's within 10 %.\n";
  return out + "Apart by more than 10 %:\n" + apart;
}

std::string demo_html(const DemoParams& params, const std::vector<DemoRun>& runs) {
  double largest_barrier = 0;
  double largest_load = 0;
  for (const DemoRun& run : runs) {
    largest_barrier = std::max(largest_barrier, run.engines.barrier_idle_fraction);
    largest_load = std::max(largest_load, run.engines.load_idle_fraction);
  }
  std::string verdicts;
  for (const Part part : parts_of(runs)) verdicts += verdict(part) + "<br>";
  std::string rows;
  for (const DemoRun& run : runs) {
    rows += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{:.0f} "
        "({:.0f})</td><td>{:.1f}</td><td>{:.0f}</td><td>{:.0f}</td>"
        "<td>{}</td><td>{:.1f} %</td></tr>\n",
        run.setup.policy, run.setup.has_prefill() ? "apart" : "together",
        bar(run.engines.barrier_idle_fraction, largest_barrier, simulated(run, kCompared[0]).mean),
        bar(run.engines.load_idle_fraction, largest_load, simulated(run, kCompared[1]).mean), run.engines.tokens_per_s,
        simulated(run, kCompared[2]).mean, run.clients.tpot_ms.p95, run.clients.ttft_ms.p95,
        run.engines.spread_mean_tokens, run.clients.errors, 100 * run.engines.late_steps_fraction);
  }
  return fmt::format(kPage, fmt::arg("workers", params.workers), fmt::arg("slots", params.slots),
                     fmt::arg("fixed", params.fixed_ms), fmt::arg("per_token", params.per_token_ms),
                     fmt::arg("requests", runs.empty() ? 0 : runs.front().clients.requests),
                     fmt::arg("load", params.load), fmt::arg("verdict", verdicts), fmt::arg("rows", rows));
}

}  // namespace balanceroute::cli
