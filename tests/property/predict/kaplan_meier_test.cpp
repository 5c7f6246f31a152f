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
};

// The estimate as it is defined: of those that could end with token y, the share that does not.
double slow_factor(const std::vector<Seen>& all, std::int64_t y) {
  const auto at_risk = std::ranges::count_if(
      all, [y](const Seen& seen) { return seen.span.first_seen < Tokens{y} && seen.span.last_seen >= Tokens{y}; });
  const auto ends = std::ranges::count_if(all, [y](const Seen& seen) {
    return seen.ended && seen.span.first_seen < Tokens{y} && seen.span.last_seen == Tokens{y};
  });
  return ends == 0 ? 1 : 1 - static_cast<double>(ends) / static_cast<double>(at_risk);
}

// Law: the curve is the slow obvious one for any mix of ended, cut and running answers, seen early or late; asking does
// not change what was counted.
TEST(KaplanMeierProperty, EqualsTheDefinition) {
  check_property(1'000, [](const std::vector<std::uint16_t>& words) {
    KaplanMeier lengths;
    std::vector<Seen> all;
    std::vector<LifeSpan> running;
    for (const std::uint16_t word : words) {
      const LifeSpan span{Tokens{word % 7 < 5 ? 0 : word / 4 % 16}, Tokens{word / 64 % 32}};
      const bool ended = word % 4 < 2;
      all.push_back({span, ended});
      if (ended) {
        lengths.ended(span);
      } else if (word % 4 == 2) {
        lengths.cut(span);
      } else {
        running.push_back(span);
      }
    }
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

}  // namespace
}  // namespace balanceroute
