// Laws of the two reports: complete, in the units they name, and silent about real time unless asked.
#include "sim/report.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace balanceroute::sim {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::Not;

Experiment experiment_of(std::vector<std::string> policies, std::vector<std::int64_t> seeds, bool timings = false) {
  SimulateParams params;
  params.trace = "examples/traces/azure2023_conv_segment.csv";
  params.policies = std::move(policies);
  params.seeds = std::move(seeds);
  params.limit = 200;
  params.timings = timings;
  return Experiment::prepare(params).value();
}

Run run_of(std::size_t variant, std::uint64_t seed, double throughput) {
  Run run{.variant = variant, .workers = 8, .load = 1.1, .seed = seed, .result = {}};
  run.result.throughput_tokens_per_s = throughput;
  run.result.tpot_ms = {.count = 1, .mean = 20, .p50 = 19, .p95 = 25, .p99 = 30, .max = 40};
  run.result.steps = 10;
  run.took = std::chrono::duration<double>{1.5};
  return run;
}

// Law: each run has every figure, by its name and unit.
TEST(JsonReport, NamesEveryFigure) {
  const Experiment experiment = experiment_of({"least_tokens"}, {7});
  const auto runs = experiment.run(1);
  const auto json = nlohmann::json::parse(json_report(experiment, runs));
  EXPECT_EQ(json["trace"]["name"], "azure2023_conv_segment.csv");
  EXPECT_EQ(json["trace"]["requests"], 200);
  ASSERT_EQ(json["runs"].size(), 1U);
  const auto& told = json["runs"][0];
  const RunResult& result = runs[0].result;
  EXPECT_EQ(told["policy"], "least_tokens");
  EXPECT_EQ(told["workers"], 8);
  EXPECT_EQ(told["slots"], 72);
  EXPECT_EQ(told["load"], 1.1);
  EXPECT_EQ(told["seed"], 7);
  EXPECT_EQ(told["non_stationary"], result.non_stationary);
  EXPECT_EQ(told["spread_mean_tokens"], result.spread_mean_tokens);
  EXPECT_EQ(told["imbalance_mean_tokens"], result.imbalance_mean_tokens);
  EXPECT_EQ(told["load_idle_fraction"], result.load_idle_fraction);
  EXPECT_EQ(told["barrier_idle_fraction"], result.barrier_idle_fraction);
  EXPECT_EQ(told["throughput_tokens_per_s"], result.throughput_tokens_per_s);
  EXPECT_EQ(told["bound_throughput_tokens_per_s"], result.bound_throughput_tokens_per_s);
  EXPECT_EQ(told["bound_share"], result.bound_share);
  EXPECT_EQ(told["step_ms_mean"], result.step_ms_mean);
  for (const auto& [name, summary] :
       {std::pair{"tpot_ms", result.tpot_ms}, {"ttft_ms", result.ttft_ms}, {"pool_wait_ms", result.pool_wait_ms}}) {
    EXPECT_EQ(told[name]["mean"], summary.mean);
    EXPECT_EQ(told[name]["p50"], summary.p50);
    EXPECT_EQ(told[name]["p95"], summary.p95);
    EXPECT_EQ(told[name]["p99"], summary.p99);
    EXPECT_EQ(told[name]["max"], summary.max);
  }
  EXPECT_EQ(told["active_mean"], result.active_mean);
  EXPECT_EQ(told["busy_fraction"], result.busy_fraction);
  EXPECT_EQ(told["slot_idle_fraction"], result.slot_idle_fraction);
  EXPECT_EQ(told["slot_idle_waiting_fraction"], result.slot_idle_waiting_fraction);
  EXPECT_EQ(told["steps"], result.steps);
  EXPECT_EQ(told["forced_admissions"], result.forced_admissions);
  EXPECT_EQ(told["preemptions"], result.preemptions);
  EXPECT_EQ(told["energy_joule_per_token"], result.energy_joule_per_token);
  EXPECT_EQ(told["settings"]["r_max"], 4);
  EXPECT_EQ(told["settings"]["greedy_threshold"], "auto");
  EXPECT_EQ(told["settings"]["step_time"], "published");
  EXPECT_EQ(told["settings"]["fixed_ms"], 9.775);
  EXPECT_EQ(told["settings"]["tokens_per_step"], 1);
  EXPECT_FALSE(told.contains("took_s"));
}

// Law: times are told by length, each request once by its prompt and once by its output.
TEST(JsonReport, TellsTimesByLength) {
  const Experiment experiment = experiment_of({"least_tokens"}, {7});
  const auto runs = experiment.run(1);
  const auto fairness = nlohmann::json::parse(json_report(experiment, runs))["runs"][0]["fairness"];
  for (const auto* by : {"by_prompt", "by_output"}) {
    ASSERT_EQ(fairness[by].size(), kLengthBuckets);
    std::size_t admitted = 0;
    std::size_t finished = 0;
    for (const auto& bucket : fairness[by]) {
      admitted += bucket["admitted"].get<std::size_t>();
      finished += bucket["finished"].get<std::size_t>();
    }
    EXPECT_EQ(admitted, runs[0].result.pool_wait_ms.count);
    EXPECT_EQ(finished, runs[0].result.tpot_ms.count);
  }
  EXPECT_EQ(fairness["by_prompt"][1]["up_to_tokens"], 2048);
  EXPECT_TRUE(fairness["by_output"][4]["up_to_tokens"].is_null());
  EXPECT_EQ(fairness["by_prompt"][1]["pool_wait_ms"]["p99"], runs[0].result.wait_by_prompt_ms[1].p99);
  EXPECT_EQ(fairness["by_output"][2]["tpot_ms"]["mean"], runs[0].result.tpot_by_output_ms[2].mean);
}

// Law: with `details` the table tells distributions, and times by length.
TEST(TableReport, TellsDetailsOnRequest) {
  SimulateParams params;
  params.trace = "examples/traces/azure2023_conv_segment.csv";
  params.policies = {"least_tokens"};
  params.limit = 200;
  params.details = true;
  const Experiment experiment = Experiment::prepare(params).value();
  std::vector runs{run_of(0, 1, 100)};
  runs[0].result.wait_by_prompt_ms[4] = {.count = 7, .mean = 1234, .p50 = 1, .p95 = 2, .p99 = 5678, .max = 9};
  const std::string table = table_report(experiment, runs);
  EXPECT_THAT(table, HasSubstr("TPOT ms  20.00  19.00  25.00  30.00  40.00"));
  EXPECT_THAT(table, ContainsRegex("> 32768 +7 +- +1234 +5678"));
  params.details = false;
  EXPECT_THAT(table_report(Experiment::prepare(params).value(), runs), Not(HasSubstr("by prompt")));
}

// Law: changes are against least_tokens wherever it stands, pair by pair, with their interval.
TEST(TableReport, TellsChangesAgainstLeastTokens) {
  const Experiment experiment = experiment_of({"br_0", "least_tokens"}, {1, 2, 3});
  const std::vector runs{run_of(0, 1, 110), run_of(0, 2, 222), run_of(0, 3, 336),
                         run_of(1, 1, 100), run_of(1, 2, 200), run_of(1, 3, 300)};
  const std::string table = table_report(experiment, runs);
  EXPECT_THAT(table, HasSubstr("load 1.1, 3 seeds; changes against least_tokens"));
  EXPECT_THAT(table, HasSubstr("+11.00 +- 2.48"));  // 10, 11, 12 %: s = 1, t = 4.303
  EXPECT_THAT(table, HasSubstr("+0.00 +- 0.00"));   // time per token
  EXPECT_THAT(table, HasSubstr("half of a 95 % interval"));
  EXPECT_THAT(table, Not(HasSubstr("*")));
}

// Law: without least_tokens the first policy is the base; a single seed has no interval.
TEST(TableReport, TakesTheFirstPolicyAsBaseOtherwise) {
  const Experiment experiment = experiment_of({"round_robin", "br_0"}, {1});
  const std::string table = table_report(experiment, std::vector{run_of(0, 1, 100), run_of(1, 1, 90)});
  EXPECT_THAT(table, HasSubstr("changes against round_robin"));
  EXPECT_THAT(table, HasSubstr("-10.00"));
  EXPECT_THAT(table, Not(HasSubstr("+-")));
}

// Law: a policy with a run that is not stationary is starred, and the star explained.
TEST(TableReport, StarsWhatIsNotStationary) {
  const Experiment experiment = experiment_of({"least_tokens", "br_0"}, {1});
  std::vector runs{run_of(0, 1, 100), run_of(1, 1, 90)};
  runs[1].result.non_stationary = true;
  const std::string table = table_report(experiment, runs);
  EXPECT_THAT(table, HasSubstr("br_0 *"));
  EXPECT_THAT(table, HasSubstr("* not stationary"));
  EXPECT_THAT(table, Not(HasSubstr("least_tokens *")));
}

// Law: a page has its first seed's loads of each policy, and trajectories are recorded for a page alone.
TEST(HtmlReport, DrawsTheFirstSeedOfEachPolicy) {
  SimulateParams params;
  params.trace = "examples/traces/azure2023_conv_segment.csv";
  params.policies = {"least_tokens", "br_0"};
  params.seeds = {3, 4};
  params.limit = 200;
  params.html = "page.html";
  const Experiment experiment = Experiment::prepare(params).value();
  const auto runs = experiment.run(1);
  for (const auto& run : runs) EXPECT_EQ(run.trajectory.has_value(), run.seed == 3);
  EXPECT_EQ(runs[0].trajectory->points.front().loads.size(), 8U);
  const std::string page = html_report(experiment, runs);
  EXPECT_THAT(page, HasSubstr("8 workers, load 1.1"));
  EXPECT_THAT(page, HasSubstr("<title>worker 7</title>"));
  EXPECT_THAT(page, Not(HasSubstr("Across sizes and loads")));
  params.html.clear();
  EXPECT_FALSE(Experiment::prepare(params).value().run(1).front().trajectory.has_value());
}

// Law: real time is told only on request, in both reports.
TEST(Reports, TellRealTimeOnlyOnRequest) {
  const std::vector runs{run_of(0, 1, 100)};
  const Experiment silent = experiment_of({"least_tokens"}, {1});
  EXPECT_THAT(table_report(silent, runs), Not(HasSubstr("took")));
  EXPECT_THAT(html_report(silent, runs), Not(HasSubstr("took")));
  EXPECT_THAT(json_report(silent, runs), Not(HasSubstr("took")));
  const Experiment timed = experiment_of({"least_tokens"}, {1}, true);
  EXPECT_THAT(table_report(timed, runs), HasSubstr("1.50"));
  EXPECT_THAT(json_report(timed, runs), HasSubstr("\"took_s\": 1.5"));
}

}  // namespace
}  // namespace balanceroute::sim
