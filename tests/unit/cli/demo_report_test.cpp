// Laws of the demo's comparison with the simulator: what agrees, and what is said of what does not.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cli/demo.hpp"

namespace balanceroute::cli {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Not;

EngineMeasures measures(double barrier, double late = 0) {
  return {.barrier_idle_fraction = barrier,
          .load_idle_fraction = 0.2,
          .late_steps_fraction = late,
          .steps = 1000,
          .tokens_per_s = 5000};
}

DemoRun run_of(double live, std::initializer_list<double> simulated, double late = 0) {
  DemoRun run{.setup = {"aggregated", "br_fit"}, .engines = measures(live, late)};
  for (const double each : simulated) run.forecast.starts.push_back(measures(each));
  return run;
}

// Law: within a tenth of the simulated mean is agreement, on both sides.
TEST(DemoComparison, ATenthApartAgrees) {
  EXPECT_THAT(demo_comparison({run_of(0.1099, {0.09, 0.11})}), HasSubstr("Every figure agrees"));
  EXPECT_THAT(demo_comparison({run_of(0.0901, {0.09, 0.11})}), HasSubstr("Every figure agrees"));
  EXPECT_THAT(demo_comparison({run_of(0.112, {0.09, 0.11})}), Not(HasSubstr("Every figure agrees")));
}

// Law: what is further apart is named with its fleet, policy and figure, and with what may explain it.
TEST(DemoComparison, WhatIsApartIsExplained) {
  EXPECT_THAT(demo_comparison({run_of(0.13, {0.08, 0.14})}),
              AllOf(HasSubstr("prefill and decode together, br_fit, barrier idle %: within the 8.0..14.0 of 2"),
                    Not(HasSubstr("load idle %:")), Not(HasSubstr("tokens/s:"))));
  EXPECT_THAT(demo_comparison({run_of(0.15, {0.08, 0.14}, 0.04)}), HasSubstr("4.0 % of the live steps ended late"));
  EXPECT_THAT(demo_comparison({run_of(0.15, {0.08, 0.14})}), HasSubstr("beyond what the simulated starts differ by"));
}

// Law: above one late step in twenty a run is called worthless, up to there it is not.
TEST(DemoTable, LateRunsAreCalledSo) {
  EXPECT_THAT(demo_table({run_of(0.1, {0.1}, 0.05)}), Not(HasSubstr("ended late")));
  EXPECT_THAT(demo_table({run_of(0.1, {0.1}, 0.05), run_of(0.1, {0.1}, 0.051)}), HasSubstr("In 1 of 2 runs"));
}

// Law: runs of the two kinds of fleet are told apart, each with its own verdict.
TEST(DemoTable, ToldByKindOfFleet) {
  auto counting = run_of(0.2, {0.2});
  counting.setup.policy = "join_shortest_queue";
  auto apart_counting = counting;
  auto apart = run_of(0.1, {0.1});
  apart_counting.setup.dialect = apart.setup.dialect = "vllm_nixl";
  apart.engines.tokens_per_s = 6000;
  const auto table = demo_table({counting, run_of(0.1, {0.1}), apart_counting, apart});
  EXPECT_THAT(table,
              AllOf(HasSubstr("prefill and decode together: br_fit against join_shortest_queue: +0.0 %"),
                    HasSubstr("prefill engines apart (vllm_nixl): br_fit against join_shortest_queue: +20.0 %")));
}

}  // namespace
}  // namespace balanceroute::cli
