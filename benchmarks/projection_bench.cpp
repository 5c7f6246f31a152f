// projection_bench.cpp - CPU time of keeping the projection of br_h: a step of a full group, a request that comes and
// goes, and reading one worker's loads ahead.
//
// refresh:1 predicts every running request anew in every step, which is what recomputation costs; refresh:10 is the
// default.
#include <benchmark/benchmark.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/random.hpp"
#include "policy/br_h/projection.hpp"
#include "predict/registry.hpp"
#include "support/traces.hpp"
#include "trace/stationary_law.hpp"

namespace balanceroute {
namespace {

constexpr std::size_t kWorkers = 8;
constexpr std::size_t kSlots = 72;
constexpr GroupId kGroup{0};

// A projection over full slots of the stationary law of a trace.
class Full {
 public:
  explicit Full(Steps refresh)
      : projection_{{.refresh = refresh}, make_predictor(PredictorParams{.name = "survival"}, nullptr).value()} {
    const auto& requests = azure_2023().requests;
    const trace::StationaryLaw law{requests};
    for (std::size_t i = 0; i < kWorkers * kSlots; ++i) {
      const auto [index, age] = law.draw(draw_);
      projection_.admitted({.id = RequestId{next_++}, .prompt = requests[index].prompt, .generated = age}, kGroup,
                           worker(i));
    }
    for (int i = 0; i < 2000; ++i) come_and_go();
  }

  void come_and_go() {
    const auto& requests = azure_2023().requests;
    const auto& drawn = requests[draw_.below(requests.size())];
    const RequestId id{next_++};
    projection_.admitted({.id = id, .prompt = drawn.prompt}, kGroup, worker(next_));
    projection_.left(id, drawn.output, LeaseEnd::finished);
  }
  void step() { projection_.stepped(kGroup, Steps{1}); }
  void read(std::vector<Tokens>& loads) { projection_.project(kGroup, WorkerId{0}, Tokens{90'000}, loads); }

 private:
  static WorkerId worker(std::uint64_t number) { return WorkerId{static_cast<std::uint32_t>(number % kWorkers)}; }

  Projection projection_;
  Random draw_{5};
  std::uint64_t next_ = 0;
};

void projection_step(benchmark::State& state) {
  Full full{Steps{state.range(0)}};
  for (auto _ : state) full.step();
}

void projection_come_and_go(benchmark::State& state) {
  Full full{Steps{10}};
  for (auto _ : state) full.come_and_go();
}

void projection_read(benchmark::State& state) {
  Full full{Steps{10}};
  std::vector<Tokens> loads(81);
  for (auto _ : state) {
    full.read(loads);
    benchmark::DoNotOptimize(loads.data());
    benchmark::ClobberMemory();
  }
}

BENCHMARK(projection_step)->Arg(10)->Arg(1)->ArgName("refresh");
BENCHMARK(projection_come_and_go);
BENCHMARK(projection_read);

}  // namespace
}  // namespace balanceroute
