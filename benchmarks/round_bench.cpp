// round_bench.cpp - CPU time of a decision round in saturation, by policy and size of the group.
//
// Times are those of the deciding thread, one round at a time, so that percentiles are those of rounds and not of
// means. `p50_us` and `p99_us` are of rounds that found `free` slots (all rounds where it is not said); `news_us` is
// the mean cost of a step's departures and growth, outside rounds. Beside them a loop of fixed work tells how fast the
// machine is.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "policy/registry.hpp"
#include "support/steady_group.hpp"
#include "support/thread_time.hpp"
#include "support/traces.hpp"

namespace balanceroute {
namespace {

struct Cell {
  SteadyGroup::Shape shape;
  std::vector<std::int64_t> free;  // numbers of free slots that are told apart; none: all rounds together
  std::int64_t rounds;
};

const std::vector<Cell>& cells() {
  static const std::vector<Cell> all{
      {{.workers = 8, .waiting = 256}, {1, 3}, 100'000},
      {{.workers = 64, .waiting = 512}, {}, 20'000},
      {{.workers = 256, .waiting = 1024}, {}, 5'000},
      {{.workers = 1024, .waiting = 4096}, {}, 1'000},
  };
  return all;
}

struct Way {
  std::string name;
  PolicyParams params;
};

std::vector<Way> ways() {
  return {{"least_tokens", {.name = "least_tokens"}},
          {"br_0", {.name = "br_0", .r_max = 16}},
          {"br_h", {.name = "br_h", .r_max = 16}},
          {"br_fit", {.name = "br_fit"}}};
}

void run_rounds(benchmark::State& state, const Way& way, const Cell& cell, std::int64_t free) {
  constexpr std::int64_t kWarmUp = 500;
  for (auto _ : state) {
    SteadyGroup group{azure_2023().requests, cell.shape, make_policy(way.params).value()};
    for (std::int64_t i = 0; i < kWarmUp; ++i) group.step();
    TimeHistogram rounds;
    std::int64_t round_ns = 0;
    std::int64_t news_ns = 0;
    for (std::int64_t i = 0; i < cell.rounds; ++i) {
      const SteadyGroup::Step step = group.step();
      news_ns += step.news_ns;
      if (free >= 0 && step.free_slots != free) continue;
      rounds.add(step.round_ns);
      round_ns += step.round_ns;
    }
    state.SetIterationTime(static_cast<double>(round_ns) / 1e9 / static_cast<double>(rounds.total()));
    state.counters["p50_us"] = rounds.quantile_ns(0.5) / 1e3;
    state.counters["p99_us"] = rounds.quantile_ns(0.99) / 1e3;
    state.counters["news_us"] = static_cast<double>(news_ns) / 1e3 / static_cast<double>(cell.rounds);
    state.counters["rounds"] = static_cast<double>(rounds.total());
  }
}

void calibration(benchmark::State& state) {
  std::uint64_t value = 1;
  for (auto _ : state) {
    for (int i = 0; i < 1000; ++i) value = mix_bits(value + 1);
    benchmark::DoNotOptimize(value);
  }
}
BENCHMARK(calibration)->Name("calibration/1000_mixes");

void register_rounds() {
  const auto best = [](const std::vector<double>& values) { return *std::ranges::min_element(values); };
  for (const Cell& cell : cells()) {
    for (const Way& way : ways()) {
      for (const std::int64_t free : cell.free.empty() ? std::vector<std::int64_t>{-1} : cell.free) {
        const std::string suffix = free < 0 ? "" : "/free:" + std::to_string(free);
        const std::string name = "round/" + way.name + "/workers:" + std::to_string(cell.shape.workers) + suffix;
        benchmark::RegisterBenchmark(
            name.c_str(), [&cell, way, free](benchmark::State& state) { run_rounds(state, way, cell, free); })
            ->Iterations(1)
            ->Repetitions(5)
            ->UseManualTime()
            ->Unit(benchmark::kMicrosecond)
            ->ComputeStatistics("best", best)
            ->DisplayAggregatesOnly();
      }
    }
  }
}

[[maybe_unused]] const bool registered = (register_rounds(), true);

}  // namespace
}  // namespace balanceroute
