// The simulator against the naive one, step by step, on random scripts.
#include "sim/simulation.hpp"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <string>
#include <vector>

#include "policy/registry.hpp"
#include "stats/quantiles.hpp"
#include "support/naive_simulation.hpp"
#include "support/property.hpp"

namespace balanceroute::sim {
namespace {

using trace::TraceRequest;

constexpr int kLongestOutput = 40;

// A script is a trace that is played once with its own times.
std::vector<TraceRequest> some_script(int longest_prompt) {
  std::vector<TraceRequest> script;
  Nanoseconds now{0};
  for (int left = *rc::gen::inRange(2, 60); left > 0; --left) {
    script.push_back({.arrival = now,
                      .prompt = Tokens{*rc::gen::inRange(1, longest_prompt + 1)},
                      .output = Tokens{*rc::gen::element(1, 1, 2, 3, 5, 12, kLongestOutput)},
                      .prefix_blocks = std::vector<std::int64_t>(*rc::gen::inRange<std::size_t>(0, 3), 1)});
    now += Nanoseconds{*rc::gen::element(0, 1, 1'000'000, 10'000'000, 13'000'000, 400'000'000)};
  }
  script.back().arrival += std::chrono::milliseconds{1};  // so that the script spans some time
  return script;
}

std::optional<engine::PrefillSettings> some_prefill() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return engine::PrefillSettings{.instances = *rc::gen::inRange<std::size_t>(1, 4),
                                 .time = {.fixed_ms = 5, .per_token_ms = *rc::gen::element(0.0, 1e-3, 1e-2)},
                                 .kv_capacity = *rc::gen::element(Tokens{60}, Tokens{6000}, Tokens{1 << 30})};
}

Fleet some_fleet(int longest_prompt) {
  const Tokens block = *rc::gen::element(Tokens{1}, Tokens{16});
  const Tokens largest_request = LoadModel::paged(block).weight_of(Tokens{longest_prompt + kLongestOutput});
  const Tokens reserve{*rc::gen::inRange<std::int64_t>(0, kLongestOutput - 15)};  // a prompt fits beside it
  return {
      .groups = *rc::gen::inRange<std::size_t>(1, 4),
      .workers = *rc::gen::inRange<std::size_t>(2, 5),
      .slots = *rc::gen::inRange(1, 5),
      .step_time = {.fixed_ms = 10, .per_token_ms = *rc::gen::element(0.0, 1e-4, 1e-2)},
      .tokens_per_step = *rc::gen::element(1.0, 1.0, 1.5, 2.25),
      .kv = *rc::gen::element(KvSpace{}, KvSpace{largest_request, reserve}, KvSpace{largest_request * 2, reserve}),
      .kv_block = block,
      .load_model = *rc::gen::element(LoadModel{}, LoadModel{}, LoadModel::paged(Tokens{16}),
                                      LoadModel::windowed(Tokens{50}, 4), LoadModel::affine(2, Tokens{30})),
      .admission_delay = {.fixed_ms = *rc::gen::element(0.0, 5.0, 30.0), .per_token_ms = *rc::gen::element(0.0, 1e-3)},
      .prefill = some_prefill(),
      .recompute_per_token_ms = *rc::gen::element(0.0, 0.01, 1.0),
      .max_wait = *rc::gen::element(std::optional<Nanoseconds>{}, std::optional<Nanoseconds>{},
                                    std::optional<Nanoseconds>{std::chrono::milliseconds{50}},
                                    std::optional<Nanoseconds>{Nanoseconds{0}})};
}

PolicyParams some_policy_params() {
  const auto names = policy_names();
  return {.name = std::string{names[*rc::gen::inRange<std::size_t>(0, names.size())]},
          .r_max = *rc::gen::inRange(1, 5),
          .greedy_threshold = *rc::gen::inRange(0, 8),
          .worker_order = *rc::gen::element<std::string>("load", "capacity"),
          .stage1_window = *rc::gen::inRange(1, 8),
          .max_passes = *rc::gen::element(1, 3, 64),
          .predictor = {.name = *rc::gen::element<std::string>("survival", "exact_match", "oracle"),
                        .min_requests = *rc::gen::element(1, 20),
                        .key_min_requests = *rc::gen::element(1, 3)},
          .horizon_steps = *rc::gen::element(0, 1, 5, 80),
          // A small one makes br_fit hold requests back even from an empty group.
          .br_fit = {.fixed_step_tokens = *rc::gen::element<std::int64_t>(100'000, 10)}};
}

// Every length from the first moment to the last.
class WholeTruth final : public LengthOracle {
 public:
  explicit WholeTruth(const std::vector<Arrival>& arrivals) {
    for (const Arrival& arrival : arrivals) add(arrival.output);
  }
  // Of the next request of those that run from the start.
  void add(Tokens output) { outputs_.push_back(output); }
  [[nodiscard]] Tokens output_of(RequestId request) const override { return outputs_.at(request.value()); }

 private:
  std::vector<Tokens> outputs_;
};

NaiveSimulation::Step plain(const SimulatedStep& step, bool measured) {
  NaiveSimulation::Step told{.group = step.group,
                             .start_ns = step.start.count(),
                             .duration_ns = step.duration.count(),
                             .loads = {},
                             .active = step.loads.active,
                             .measured = measured};
  for (const Tokens load : step.loads.loads) told.loads.push_back(load.count());
  return told;
}

void require_same(const Summary& told, const std::vector<double>& values) {
  const Summary expected = summarize(values);
  require(told.count == expected.count);
  require(std::abs(told.mean - expected.mean) <= 1e-9 * std::max(1.0, expected.mean));
  require(told.max == expected.max);
}

// Law: from the first arrival to the last, every step of every group begins at the same moment with the same loads, and
// the measured window holds the same waits, times to first token and times per token.
TEST(SimulationProperty, EqualsTheNaiveSimulationStepByStep) {
  check_property(500, [] {
    const int longest_prompt = *rc::gen::element(40, 4000);
    const auto script = some_script(longest_prompt);
    const Fleet fleet = some_fleet(longest_prompt);
    const PolicyParams policy = some_policy_params();
    const RequestStream stream{script, {.arrivals = ArrivalLaw::trace, .rate_per_second = trace::arrival_rate(script)}};
    std::vector<Arrival> arrivals;
    for (RequestStream copy = stream; !copy.done(); copy.pop()) arrivals.push_back(copy.next());
    const auto seed = *rc::gen::arbitrary<std::uint64_t>();
    const auto truth = std::make_shared<TrueLengths>();
    WholeTruth script_truth{arrivals};
    const auto policy_with = [&](const LengthOracle& lengths) {
      return make_policy(policy, {.load_model = fleet.load_model, .lengths = &lengths}).value();
    };
    Simulation fast{fleet, policy_with(*truth), stream, seed, truth};
    NaiveSimulation slow{fleet, policy_with(script_truth), arrivals, seed};

    const trace::StationaryLaw law{script};
    const auto warm =
        *rc::gen::inRange<std::size_t>(0, fleet.all_workers() * static_cast<std::size_t>(fleet.slots) + 1);
    Random random{seed};
    fast.warm_up(script, law, warm, random);
    Random again{seed};
    for (std::size_t i = 0; i < warm; ++i) {
      const auto [index, age] = law.draw(again);
      const std::size_t worker = i % fleet.all_workers();
      script_truth.add(script[index].output);
      slow.start_with(worker / fleet.workers, worker % fleet.workers, script[index], age);
    }

    const auto expected = slow.run();
    std::size_t count = 0;
    while (const auto step = fast.step()) {
      require(count < expected.size());
      require(plain(*step, expected[count].measured) == expected[count]);
      ++count;
    }
    require(count == expected.size());
    const RunResult result = fast.result();
    require(result.steps == std::ranges::count_if(expected, &NaiveSimulation::Step::measured));
    if (result.steps == 0) return;
    require(result.preemptions == slow.preemptions);
    require_same(result.pool_wait_ms, slow.waits);
    require_same(result.ttft_ms, slow.ttfts);
    require_same(result.tpot_ms, slow.tpots);
  });
}

}  // namespace
}  // namespace balanceroute::sim
