// simulate_bench.cpp - how long `simulate` takes, one core, reading of the trace left out.
#include <benchmark/benchmark.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "sim/experiment.hpp"
#include "support/traces.hpp"

namespace balanceroute {
namespace {

void run_simulation(benchmark::State& state, const std::string& policy, std::int64_t workers, std::int64_t limit,
                    std::int64_t repeat) {
  sim::SimulateParams params;
  params.trace = kAzure2023;
  params.policies = {policy};
  params.workers = {workers};
  params.limit = limit;
  params.repeat = repeat;
  const auto experiment = sim::Experiment::prepare(params);
  if (!experiment) {
    state.SkipWithError(experiment.error().c_str());
    return;
  }
  for (auto _ : state) benchmark::DoNotOptimize(experiment->run(1));
  state.SetItemsProcessed(state.iterations() * limit * repeat);
}

void register_simulations() {
  for (const std::string policy : {"least_tokens", "br_0", "br_h", "br_fit"}) {
    benchmark::RegisterBenchmark(("simulate/" + policy + "/workers:8/requests:10000").c_str(),
                                 [policy](benchmark::State& state) { run_simulation(state, policy, 8, 10'000, 1); })
        ->Unit(benchmark::kMillisecond);
    benchmark::RegisterBenchmark(("simulate/" + policy + "/workers:256/requests:1000000").c_str(),
                                 [policy](benchmark::State& state) { run_simulation(state, policy, 256, 10'000, 100); })
        ->Iterations(1)
        ->Unit(benchmark::kSecond);
  }
}

[[maybe_unused]] const bool registered = (register_simulations(), true);

}  // namespace
}  // namespace balanceroute
