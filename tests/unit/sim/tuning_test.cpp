// Laws of a search: every combination once beside the default, the best by its objective, told with what is not sure.
#include "sim/tuning.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "sim/tune_report.hpp"

namespace balanceroute::sim {
namespace {

using testing::HasSubstr;
using testing::Not;

TuneParams small_search() {
  TuneParams params;
  params.common.trace = "examples/traces/azure2023_conv_segment.csv";
  params.common.limit = 120;
  params.workers = 4;
  params.betas = {4, 43};
  params.gammas = {0.5, 0.9};
  params.horizons = {10};
  params.seeds = {1, 2};
  return params;
}

// Law: the map is tried by rows of gamma and columns of beta; the default comes along if it is not in it.
TEST(Tuning, TriesEveryCombinationAndTheDefault) {
  const auto tuned = tune(small_search(), 2);
  ASSERT_TRUE(tuned) << tuned.error();
  ASSERT_EQ(tuned->trials.size(), 5U);
  EXPECT_EQ(tuned->trials[0].setting, (Setting{.beta = 4, .gamma = 0.5, .horizon_steps = 10, .r_max = 4}));
  EXPECT_EQ(tuned->trials[1].setting, (Setting{.beta = 43, .gamma = 0.5, .horizon_steps = 10, .r_max = 4}));
  EXPECT_EQ(tuned->trials[2].setting, (Setting{.beta = 4, .gamma = 0.9, .horizon_steps = 10, .r_max = 4}));
  EXPECT_EQ(tuned->standard, 4U);
  EXPECT_EQ(tuned->trials[4].setting, (Setting{.beta = 43, .gamma = 0.86, .horizon_steps = 80, .r_max = 4}));
  EXPECT_EQ(tuned->trials[4].change.mean, 0);
  TuneParams with_default = small_search();
  with_default.gammas = {0.86};
  with_default.horizons = {80};
  EXPECT_EQ(tune(with_default, 2)->trials.size(), 2U);
}

// Law: the best one is best in the objective, whichever way that is better, and its figures are its runs' own.
TEST(Tuning, FindsTheBestByItsObjective) {
  for (const auto* objective : {"throughput", "spread_tokens"}) {
    TuneParams params = small_search();
    params.objective = objective;
    const Tuned tuned = tune(params, 2).value();
    for (const Trial& trial : tuned.trials) {
      EXPECT_FALSE(tuned.objective().better(trial.value.mean, tuned.trials[tuned.best].value.mean)) << objective;
    }
  }
  SimulateParams alone = small_search().simulation({1, 2});
  alone.policies = {"br_h"};
  alone.policy_settings.beta = 4;
  alone.policy_settings.gamma = 0.9;
  alone.policy_settings.horizon_steps = 10;
  double sum = 0;
  for (const auto& run : Experiment::prepare(alone).value().run(1)) sum += run.result.throughput_tokens_per_s;
  EXPECT_NEAR(tune(small_search(), 1)->trials[2].value.mean, sum / 2, 1e-9 * sum);
}

TEST(Tuning, DoesNotDependOnThreads) {
  EXPECT_EQ(tune_json(tune(small_search(), 1).value()), tune_json(tune(small_search(), 2).value()));
}

TEST(Objective, IsDecidedByTheLoad) {
  EXPECT_EQ(objective_of("auto", 1.1).name, "throughput");
  EXPECT_EQ(objective_of("auto", 0.8).name, "step_ms");
  EXPECT_EQ(objective_of("tpot_p95_ms", 1.1).name, "tpot_p95_ms");
}

// An outcome whose best setting is the first of two, with this lead over the default.
Tuned outcome(MeanInterval lead) {
  Tuned tuned{.params = small_search(), .trace_name = "t.csv", .lengths = {}};
  tuned.params.gammas = {0.9};
  tuned.trials = {{.setting = {.beta = 4, .gamma = 0.9, .horizon_steps = 10, .r_max = 4},
                   .value = {.mean = 110, .half_width = 1},
                   .change = {.mean = 10, .half_width = 1}},
                  {.setting = {.beta = 43, .gamma = 0.9, .horizon_steps = 10, .r_max = 4},
                   .value = {.mean = 100, .half_width = 1},
                   .change = {.mean = 0, .half_width = 0}}};
  tuned.standard = 1;
  tuned.gain_on_default = lead;
  tuned.gain_on_least_tokens = {.mean = 20, .half_width = 2};
  return tuned;
}

// Law: a lead that chance may have made is called so; one interval away from 0 it is not.
TEST(TuneReport, WarnsOfALeadWithinChance) {
  EXPECT_THAT(verdict(outcome({.mean = 3, .half_width = 1})), Not(HasSubstr("within chance")));
  EXPECT_THAT(verdict(outcome({.mean = 3, .half_width = 4})), HasSubstr("within chance"));
  EXPECT_THAT(verdict(outcome({.mean = -3, .half_width = 1})), HasSubstr("within chance"));
  EXPECT_THAT(verdict(outcome({.mean = 3, .half_width = {}})), HasSubstr("within chance"));
  Tuned at_default = outcome({.mean = 0, .half_width = 0});
  at_default.best = at_default.standard;
  EXPECT_THAT(verdict(at_default), HasSubstr("The default is best: beta 43"));
  EXPECT_THAT(verdict(at_default), Not(HasSubstr("within chance")));
}

// Law: map, verdict and lines to paste are in the text; the same figures in JSON and page.
TEST(TuneReport, TellsMapVerdictAndConfiguration) {
  const Tuned tuned = outcome({.mean = 3, .half_width = 1});
  const std::string text = tune_table(tuned);
  EXPECT_THAT(text, HasSubstr("gamma \\ beta         4       43\n0.9           +10.00 <  default\n"));
  EXPECT_THAT(text, HasSubstr("+3.00 +- 1.00 % better than the default"));
  EXPECT_THAT(text, HasSubstr("policy:\n  name: br_h\n  r_max: 4\n  horizon_steps: 10\n  beta: 4\n  gamma: 0.9\n"));
  const auto json = nlohmann::json::parse(tune_json(tuned));
  EXPECT_EQ(json["best"]["beta"], 4);
  EXPECT_EQ(json["gain_on_default_percent"]["mean"], 3);
  EXPECT_EQ(json["within_noise"], false);
  EXPECT_EQ(json["trials"][1]["change_percent"]["mean"], 0);
  const std::string page = tune_html(tuned);
  EXPECT_THAT(page, HasSubstr("<td class=\"chosen\" style=\"--p:55%\">110"));
  EXPECT_THAT(page, HasSubstr("<td style=\"--p:0%\">100"));
}

// Law: what the runs were set to besides is among the lines to paste.
TEST(TuneReport, ConfigurationHasWhatDiffersFromTheDefaults) {
  Tuned tuned = outcome({.mean = 3, .half_width = 1});
  EXPECT_THAT(config_lines(tuned), Not(HasSubstr("projection")));
  tuned.params.common.policy_settings.projection = "point";
  tuned.params.common.policy_settings.predictor.name = "exact_match";
  EXPECT_THAT(config_lines(tuned), HasSubstr("  predictor: exact_match\n"));
  EXPECT_THAT(config_lines(tuned), HasSubstr("  projection: point\n"));
}

}  // namespace
}  // namespace balanceroute::sim
