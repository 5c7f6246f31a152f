#include "policy/br_h/br_h.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>
#include <vector>

#include "core/random.hpp"
#include "policy/br_0/br_0.hpp"
#include "policy/br_h/horizon_formula.hpp"
#include "policy/registry.hpp"
#include "support/group_sketch.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

struct Case {
  HorizonWeights weights;
  std::vector<Tokens> envelope;
  std::vector<Tokens> loads;
  std::vector<Tokens> others;  // largest load beside this worker's, by step

  [[nodiscard]] LoadRow row() const { return {envelope, loads}; }
};

Case draw_case(Random& draw) {
  static constexpr std::array kGammas{1.0, 0.5, 0.86, 0.98};
  Case one;
  one.weights = {.alpha = static_cast<double>(draw.below(4)),
                 .beta = static_cast<double>(draw.below(60)),
                 .gamma = kGammas[draw.below(kGammas.size())],
                 .horizon = Steps{static_cast<std::int64_t>(draw.below(90))},
                 .growth = Tokens{static_cast<std::int64_t>(draw.below(3))}};
  const std::uint64_t largest = draw.below(2) == 0 ? 30 : 400'000;
  for (std::int64_t h = 0; h <= one.weights.horizon.count(); ++h) {
    one.loads.emplace_back(static_cast<std::int64_t>(draw.below(largest)));
    one.others.emplace_back(static_cast<std::int64_t>(draw.below(largest)));
    one.envelope.push_back(std::max(one.loads.back(), one.others.back()));
  }
  return one;
}

Tokens draw_size(Random& draw) {
  return Tokens{static_cast<std::int64_t>(draw.below(draw.below(2) == 0 ? 60 : 500'000))};
}

// Law: the sum over the steps and the table with its binary search give the same score, to the bit.
TEST(HorizonFormulaProperty, BothMethodsAgree) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const Case one = draw_case(draw);
    const HorizonFormula formula{one.weights};
    const auto sequences = static_cast<std::int32_t>(1 + draw.below(5));
    SortedRooms table;
    formula.sort(one.row(), sequences, table);
    for (int i = 0; i < 5; ++i) {
      const Tokens size = draw_size(draw);
      require(formula.score(one.row(), size, sequences) == formula.score(table, size, sequences));
    }
  });
}

// Law: it is the formula as it is written down, but for the rounding of the discounts to 2^-40.
TEST(HorizonFormulaProperty, IsTheFormula) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const Case one = draw_case(draw);
    const HorizonFormula formula{one.weights};
    const auto sequences = static_cast<std::int32_t>(1 + draw.below(5));
    const Tokens size = draw_size(draw);
    double placed = 0;
    double above = 0;
    for (std::size_t h = 0; h < one.loads.size(); ++h) {
      const double discount = std::pow(one.weights.gamma, static_cast<double>(h));
      const double grown = static_cast<double>(one.weights.growth.count()) * static_cast<double>(h) * sequences;
      const double its_size = static_cast<double>(size.count()) + grown;
      placed += discount * its_size;
      above += discount * std::max(0.0, its_size - static_cast<double>((one.envelope[h] - one.loads[h]).count()));
    }
    const double expected = one.weights.alpha * placed - one.weights.beta * above;
    const double scale = one.weights.alpha * placed + one.weights.beta * above + 1;
    require(std::abs(formula.score(one.row(), size, sequences) - expected) <= 1e-9 * scale);
  });
}

// Law: with weights 1 and G, and no discount, the score is what the admission takes off the imbalance, summed over the
// steps.
TEST(HorizonFormulaProperty, IsTheDropOfImbalanceOverTheHorizon) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    Case one = draw_case(draw);
    const auto workers = static_cast<std::int64_t>(2 + draw.below(20));
    one.weights.alpha = 1;
    one.weights.beta = static_cast<double>(workers);
    one.weights.gamma = 1;
    const auto sequences = static_cast<std::int32_t>(1 + draw.below(5));
    const Tokens size = draw_size(draw);
    std::int64_t drop = 0;
    for (std::size_t h = 0; h < one.loads.size(); ++h) {
      const Tokens its = size + one.weights.growth * sequences * static_cast<std::int64_t>(h);
      const Tokens after = std::max(one.envelope[h], one.loads[h] + its);
      drop += (one.envelope[h] * workers - after * workers + its).count();
    }
    require((HorizonFormula{one.weights}.score(one.row(), size, sequences)) == static_cast<double>(drop));
  });
}

// Law: nothing scores higher than the peak, but for the rounding of what is nearly flat; without one, more is better.
TEST(HorizonFormulaProperty, PeakIsBest) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const Case one = draw_case(draw);
    HorizonFormula formula{one.weights};
    const auto sequences = static_cast<std::int32_t>(1 + draw.below(5));
    const Tokens peak = formula.peak(one.row(), sequences);
    const auto score = [&](Tokens size) { return formula.score(one.row(), size, sequences); };
    constexpr double kRounding = 1e-6;
    require(peak >= Tokens{0});
    if (peak == HorizonFormula::kNoPeak) {
      const Tokens size = draw_size(draw);
      require(score(size) <= score(size + Tokens{1}) + kRounding);
      return;
    }
    require(score(peak) + kRounding >= score(peak + Tokens{1}));
    if (peak > Tokens{0}) require(score(peak - Tokens{1}) <= score(peak) + kRounding);
    for (int i = 0; i < 4; ++i) require(score(draw_size(draw)) <= score(peak) + kRounding);
  });
}

TwoStageSettings draw_settings(Random& draw) {
  return {.r_max = 1 + draw.below(6),
          .greedy_threshold = static_cast<std::int64_t>(draw.below(10)),
          .worker_order = draw.below(2) == 0 ? WorkerOrder::load : WorkerOrder::capacity,
          .stage1_window = 1 + draw.below(8),
          .max_passes = static_cast<std::int32_t>(1 + draw.below(6))};
}

GroupSketch draw_group(Random& draw) {
  GroupSketch group;
  for (std::uint64_t i = 2 + draw.below(6); i > 0; --i) {
    group.add({.load = static_cast<std::int64_t>(draw.below(300'000)),
               .free_slots = static_cast<std::int32_t>(draw.below(4)),
               .eligible = draw.below(5) != 0,
               .sequences = static_cast<std::int32_t>(draw.below(3))});
  }
  return group;
}

std::vector<Candidate> draw_pool(Random& draw) {
  std::vector<Sketched> all(draw.below(20));
  for (Sketched& one : all) {
    one = {.prompt = static_cast<std::int64_t>(draw.below(90'000)),
           .sequences = static_cast<std::int32_t>(1 + draw.below(3))};
  }
  return sketch_pool(all);
}

bool same_choice(const Choice& a, const Choice& b) {
  const bool same_runner_up =
      a.runner_up.has_value() == b.runner_up.has_value() &&
      (!a.runner_up || (a.runner_up->worker == b.runner_up->worker && a.runner_up->score == b.runner_up->score));
  return a.candidate == b.candidate && a.worker == b.worker && a.stage == b.stage && a.set_size == b.set_size &&
         a.score == b.score && a.margin == b.margin && same_runner_up;
}

// Law: with horizon 0 a round of br_h is a round of br_0, scores and runners-up included, whatever its weights.
TEST(BrHProperty, WithoutHorizonItIsBr0) {
  Random unused{0};
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    const TwoStageSettings settings = draw_settings(draw);
    const GroupSketch group = draw_group(draw);
    const std::vector<Candidate> pool = draw_pool(draw);
    const RoundInput input{.group = group.view(), .pool = pool, .explain = draw.below(2) == 0};
    const HorizonWeights weights{.alpha = 3, .beta = 5, .horizon = Steps{0}};
    BrH ahead{settings, weights, {}, nullptr};
    Br0 now{settings};
    std::vector<Choice> choices;
    std::vector<Choice> expected;
    ahead.decide(input, unused, choices);
    now.decide(input, unused, expected);
    require(std::ranges::equal(choices, expected, same_choice));
  });
}

}  // namespace
}  // namespace balanceroute
