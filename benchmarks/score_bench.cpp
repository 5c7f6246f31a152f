// score_bench.cpp - CPU time of the score of br_h: step by step, by a table, of finding the peak, and of sets.
//
// The table pays where so many scores of one worker and number of sequences are asked for that making it costs less
// than the difference: HorizonFormula::kTablePays.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "policy/br_h/horizon_formula.hpp"
#include "policy/two_stage/best_subset.hpp"

namespace balanceroute {
namespace {

// One worker's loads and its group's envelope as they look in saturation: some ten thousand tokens apart.
struct Ahead {
  explicit Ahead(std::int64_t horizon) {
    Random draw{7};
    std::int64_t load = 180'000;
    std::int64_t most = 220'000;
    for (std::int64_t h = 0; h <= horizon; ++h) {
      loads.emplace_back(load);
      envelope.emplace_back(most);
      load += static_cast<std::int64_t>(draw.below(2000)) - 1000;
      most = std::max(load, most + static_cast<std::int64_t>(draw.below(2000)) - 1000);
    }
  }
  [[nodiscard]] LoadRow row() const { return {envelope, loads}; }

  std::vector<Tokens> loads;
  std::vector<Tokens> envelope;
};

HorizonFormula formula_for(const benchmark::State& state) {
  return HorizonFormula{{.horizon = Steps{state.range(0)}}};
}

void score_by_steps(benchmark::State& state) {
  const Ahead ahead{state.range(0)};
  const HorizonFormula formula = formula_for(state);
  Tokens size{1000};
  for (auto _ : state) {
    benchmark::DoNotOptimize(formula.score(ahead.row(), size, 1));
    size = Tokens{(size.count() * 7 + 13) % 60'000};
  }
}

void score_by_table(benchmark::State& state) {
  const Ahead ahead{state.range(0)};
  const HorizonFormula formula = formula_for(state);
  SortedRooms table;
  formula.sort(ahead.row(), 1, table);
  Tokens size{1000};
  for (auto _ : state) {
    benchmark::DoNotOptimize(formula.score(table, size, 1));
    size = Tokens{(size.count() * 7 + 13) % 60'000};
  }
}

void make_table(benchmark::State& state) {
  const Ahead ahead{state.range(0)};
  const HorizonFormula formula = formula_for(state);
  SortedRooms table;
  for (auto _ : state) {
    formula.sort(ahead.row(), 1, table);
    benchmark::DoNotOptimize(table);
  }
}

void find_peak(benchmark::State& state) {
  const Ahead ahead{state.range(0)};
  HorizonFormula formula = formula_for(state);
  for (auto _ : state) benchmark::DoNotOptimize(formula.peak(ahead.row(), 1));
}

// The scores of one worker, as a round has them.
struct OnOneWorker {
  const Ahead& ahead;
  HorizonFormula& formula;
  SortedRooms table{};
  std::int32_t of_table = 0;

  [[nodiscard]] double score(Tokens weight, std::int32_t sequences) const {
    return sequences == of_table ? formula.score(table, weight, sequences)
                                 : formula.score(ahead.row(), weight, sequences);
  }
  [[nodiscard]] Tokens peak(std::int32_t sequences) { return formula.peak(ahead.row(), sequences); }
  void expect(std::int32_t sequences, std::size_t count) {
    if (count < HorizonFormula::kTablePays) return;
    formula.sort(ahead.row(), sequences, table);
    of_table = sequences;
  }
};

// range(1) candidates for range(2) free slots.
void best_set(benchmark::State& state) {
  const Ahead ahead{state.range(0)};
  HorizonFormula formula = formula_for(state);
  OnOneWorker scores{ahead, formula};
  SubsetSearch search;
  Random draw{3};
  std::vector<SubsetItem> items(static_cast<std::size_t>(state.range(1)));
  const Room room{.slots = static_cast<std::int32_t>(state.range(2))};
  for (auto _ : state) {
    state.PauseTiming();
    for (SubsetItem& item : items) item.weight = Tokens{static_cast<std::int64_t>(20 + draw.below(7000))};
    state.ResumeTiming();
    benchmark::DoNotOptimize(search.best(items, room, scores));
  }
}

BENCHMARK(score_by_steps)->Arg(20)->Arg(80)->Arg(200)->ArgName("horizon");
BENCHMARK(score_by_table)->Arg(20)->Arg(80)->Arg(200)->ArgName("horizon");
BENCHMARK(make_table)->Arg(20)->Arg(80)->Arg(200)->ArgName("horizon");
BENCHMARK(find_peak)->Arg(20)->Arg(80)->Arg(200)->ArgName("horizon");
BENCHMARK(best_set)
    ->ArgNames({"horizon", "candidates", "slots"})
    ->Args({80, 4, 1})
    ->Args({80, 16, 1})
    ->Args({80, 16, 3})
    ->Args({80, 64, 3})
    ->Args({80, 64, 7})
    ->Args({80, 256, 7})
    ->Args({80, 1024, 7});

}  // namespace
}  // namespace balanceroute
