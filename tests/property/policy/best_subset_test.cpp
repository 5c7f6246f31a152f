#include "policy/two_stage/best_subset.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "policy/br_0/br_0.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

// Of two sets the one whose first difference, oldest request first, names the older request; a set that another only
// continues comes first.
bool reads_first(std::uint32_t a, std::uint32_t b) {
  for (std::uint32_t bit = 1; bit != 0; bit <<= 1) {
    if ((a & bit) == (b & bit)) continue;
    const std::uint32_t rest = ~(bit | (bit - 1));  // requests behind the difference
    if ((a & bit) != 0) return (b & rest) != 0;     // b ends here: b comes first
    return (a & rest) == 0;
  }
  return false;
}

template <class Score>
Subset brute_force(const std::vector<SubsetItem>& items, std::int32_t free_slots, const Score& score) {
  Subset best;
  for (std::uint32_t members = 1; members < (std::uint32_t{1} << items.size()); ++members) {
    Subset set{.members = members};
    for (std::size_t i = 0; i < items.size(); ++i) {
      if ((members >> i & 1) == 0) continue;
      set.weight += items[i].weight;
      set.sequences += items[i].sequences;
    }
    if (set.sequences > free_slots) continue;
    set.score = score(set.weight, set.sequences);
    if (set.score > best.score || (set.score == best.score && reads_first(members, best.members))) best = set;
  }
  return best;
}

std::vector<SubsetItem> draw_items(Random& draw, std::size_t most, std::uint64_t largest) {
  std::vector<SubsetItem> items(draw.below(most + 1));
  for (SubsetItem& item : items) {
    item.weight = Tokens{static_cast<std::int64_t>(draw.below(largest))};
    item.sequences = draw.below(3) == 0 ? static_cast<std::int32_t>(1 + draw.below(3)) : 1;
  }
  return items;
}

template <class Score>
void expect_best(const std::vector<SubsetItem>& items, std::int32_t free_slots, const Score& score) {
  const Subset found = SubsetSearch{std::span{items}, free_slots, score}.best();
  const Subset expected = brute_force(items, free_slots, score);
  require(found.members == expected.members);
  require(found.score == expected.score);
  require(found.weight == expected.weight);
  require(found.sequences == expected.sequences);
}

// Law: the search finds the set that trying all 2^n finds, under the one-step score. Small weights make ties common.
TEST(BestSubsetProperty, EqualsFullEnumerationUnderTheOneStepScore) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, 8, draw.below(2) == 0 ? 10 : 10'000);
    const auto free_slots = static_cast<std::int32_t>(1 + draw.below(8));
    const Tokens margin{static_cast<std::int64_t>(draw.below(20'000))};
    const std::size_t workers = 1 + draw.below(64);
    expect_best(items, free_slots, [&](Tokens weight, std::int32_t) {
      return static_cast<double>(br_0_score(weight, margin, workers).count());
    });
  });
}

// Law: the same for a score that looks at the number of sequences too, as horizon scores do.
TEST(BestSubsetProperty, EqualsFullEnumerationWhenCountsMatter) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, 8, 1000);
    const auto free_slots = static_cast<std::int32_t>(1 + draw.below(8));
    const auto target = static_cast<double>(draw.below(4000));
    const auto per_sequence = static_cast<double>(draw.below(100));
    expect_best(items, free_slots, [&](Tokens weight, std::int32_t sequences) {
      return -std::abs(target - static_cast<double>(weight.count()) - per_sequence * sequences);
    });
  });
}

// Law: the same at the full width of 16 candidates.
TEST(BestSubsetProperty, EqualsFullEnumerationOfSixteen) {
  check_property(20, [](std::uint64_t seed) {
    Random draw{seed};
    std::vector<SubsetItem> items = draw_items(draw, 16, 5000);
    items.resize(16, {.weight = Tokens{static_cast<std::int64_t>(draw.below(5000))}});
    const Tokens margin{static_cast<std::int64_t>(draw.below(30'000))};
    expect_best(items, static_cast<std::int32_t>(1 + draw.below(20)), [&](Tokens weight, std::int32_t) {
      return static_cast<double>(br_0_score(weight, margin, 8).count());
    });
  });
}

}  // namespace
}  // namespace balanceroute
