#include "predict/kaplan_meier.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "support/property.hpp"

namespace balanceroute {
namespace {

struct Seen {
  LifeSpan span;
  bool ended;
  double weight = 1;
};

// The estimate as it is defined: of those that could end with token y, the share that does not, each by its weight.
double slow_factor(const std::vector<Seen>& all, std::int64_t y) {
  double at_risk = 0;
  double ends = 0;
  for (const Seen& seen : all) {
    if (seen.span.first_seen >= Tokens{y} || seen.span.last_seen < Tokens{y}) continue;
    at_risk += seen.weight;
    if (seen.ended && seen.span.last_seen == Tokens{y}) ends += seen.weight;
  }
  return ends == 0 ? 1 : 1 - ends / at_risk;
}

// Law: the curve is the slow obvious one for any mix of ended, cut and running answers, seen early or late, faded or
// not; its sums are those of its values; asking does not change what was counted.
TEST(KaplanMeierProperty, EqualsTheDefinition) {
  check_property(10'000, [](const std::vector<std::uint16_t>& words) {
    KaplanMeier lengths;
    std::vector<Seen> all;
    std::vector<LifeSpan> running;
    int halvings = 0;
    for (const std::uint16_t word : words) {
      const LifeSpan span{Tokens{word % 7 < 5 ? 0 : word / 4 % 16}, Tokens{word / 64 % 32}};
      const bool ended = word % 4 < 2;
      if (word % 32 == 31 && halvings < 15) {
        lengths.halve();
        for (Seen& seen : all) seen.weight /= 2;
        ++halvings;
      } else if (word % 4 == 3) {
        running.push_back(span);
      } else {
        all.push_back({span, ended});
        ended ? lengths.ended(span) : lengths.cut(span);
      }
    }
    for (const LifeSpan& span : running) all.push_back({span, false});
    SurvivalCurve curve;
    for (int times = 0; times < 2; ++times) {
      lengths.fill(curve, running);
      double expected = 1;
      double before = 1;
      double sum = 0;
      for (std::int64_t x = 0; x < 40; ++x) {
        const double survival = curve.at(Tokens{x});
        if (x > 0) expected *= slow_factor(all, x);
        require(std::abs(survival - expected) < 1e-12);
        require(survival <= before && survival >= 0);
        before = survival;
        if (Tokens{x} <= curve.longest()) sum += survival;
      }
      require(std::abs(sum - curve.mean_tokens()) < 1e-9);
    }
  });
}

// Law: the mean within a horizon is the sum of the chances to run on, step by step, at any age and beyond all data.
TEST(KaplanMeierProperty, TheMeanWithinAHorizonIsTheSumOfChances) {
  check_property(10'000, [](const std::vector<std::uint8_t>& words, std::uint8_t age, std::uint8_t horizon) {
    KaplanMeier lengths;
    for (const std::uint8_t word : words) {
      const LifeSpan span{Tokens{0}, Tokens{word / 4}};
      word % 4 > 0 ? lengths.ended(span) : lengths.cut(span);
    }
    SurvivalCurve curve;
    lengths.fill(curve, {});
    double sum = 0;
    for (std::int64_t h = 0; h < horizon; ++h) sum += curve.conditional(Tokens{age / 2}, Tokens{h});
    require(std::abs(curve.mean_within(Tokens{age / 2}, Tokens{horizon}) - sum) < 1e-9);
  });
}

}  // namespace
}  // namespace balanceroute
