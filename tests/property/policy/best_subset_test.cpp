#include "policy/two_stage/best_subset.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "core/random.hpp"
#include "policy/br_0/br_0.hpp"
#include "policy/two_stage/reachable_sums.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

// The one-step score of a worker.
struct OneStep {
  Tokens margin;
  std::size_t workers;

  [[nodiscard]] double score(Tokens weight, std::int32_t) const {
    return static_cast<double>(br_0_score(weight, margin, workers).count());
  }
  [[nodiscard]] Tokens peak(std::int32_t) const { return margin; }
  void expect(std::int32_t, std::size_t) const {}
};

// Concave, and other for each number of sequences, as horizon scores are; less steep up than down.
struct Roof {
  std::int64_t top;
  std::int64_t per_sequence;
  std::int64_t slope_up;
  std::int64_t slope_down;
  std::int64_t gain;  // for each sequence

  [[nodiscard]] double score(Tokens weight, std::int32_t sequences) const {
    const std::int64_t below = peak(sequences).count() - weight.count();
    return static_cast<double>(gain * sequences - (below > 0 ? slope_up : -slope_down) * below + slope_up * top);
  }
  [[nodiscard]] Tokens peak(std::int32_t sequences) const {
    return Tokens{std::max<std::int64_t>(0, top - per_sequence * sequences)};
  }
  void expect(std::int32_t, std::size_t) const {}
};

// Of two sets the one whose first difference, oldest request first, names the older request; a set that another only
// continues comes first.
bool reads_first(const std::vector<std::size_t>& a, const std::vector<std::size_t>& b) {
  return std::ranges::lexicographical_compare(a, b);
}

Subset sum_up(const std::vector<SubsetItem>& items, std::uint32_t bits) {
  Subset set;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if ((bits >> i & 1) == 0) continue;
    set.members.push_back(i);
    set.weight += items[i].weight;
    set.sequences += items[i].sequences;
  }
  return set;
}

Tokens kv_of(const std::vector<SubsetItem>& items, const Subset& set) {
  Tokens kv{0};
  for (const std::size_t i : set.members) kv += items[i].kv;
  return kv;
}

template <class Score>
Subset brute_force(const std::vector<SubsetItem>& items, const Room& room, const Score& score) {
  Subset best;
  for (std::uint32_t bits = 1; bits < (std::uint32_t{1} << items.size()); ++bits) {
    Subset set = sum_up(items, bits);
    if (set.sequences > room.slots || kv_of(items, set) > room.kv) continue;
    set.score = score.score(set.weight, set.sequences);
    if (set.score > best.score || (set.score == best.score && reads_first(set.members, best.members))) best = set;
  }
  return best;
}

std::vector<SubsetItem> draw_items(Random& draw, std::size_t count, std::uint64_t largest, bool wide = true) {
  std::vector<SubsetItem> items(count);
  for (SubsetItem& item : items) {
    item.weight = Tokens{static_cast<std::int64_t>(draw.below(largest))};
    item.sequences = wide && draw.below(3) == 0 ? static_cast<std::int32_t>(1 + draw.below(3)) : 1;
    item.kv = Tokens{static_cast<std::int64_t>(draw.below(largest))};
  }
  return items;
}

// Unlimited KV space in half of the cases.
Room draw_room(Random& draw, std::uint64_t slots, std::uint64_t kv) {
  Room room{.slots = static_cast<std::int32_t>(1 + draw.below(slots))};
  if (draw.below(2) == 0) room.kv = Tokens{static_cast<std::int64_t>(draw.below(kv))};
  return room;
}

// The set that was found is what it says, and fits.
void expect_true_and_fitting(const std::vector<SubsetItem>& items, const Room& room, const Subset& found) {
  require(std::ranges::is_sorted(found.members));
  require(std::ranges::adjacent_find(found.members) == found.members.end());
  Subset again;
  for (const std::size_t i : found.members) {
    again.weight += items[i].weight;
    again.sequences += items[i].sequences;
  }
  require(again.weight == found.weight);
  require(again.sequences == found.sequences);
  require(found.sequences <= room.slots);
  require(kv_of(items, found) <= room.kv || found.members.empty());
}

// Law: the search finds the set that trying all 2^n finds, under the one-step score. Small weights make ties common.
TEST(BestSubsetProperty, EqualsFullEnumerationUnderTheOneStepScore) {
  SubsetSearch search;
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    const std::uint64_t largest = draw.below(2) == 0 ? 10 : 10'000;
    const auto items = draw_items(draw, draw.below(9), largest);
    const Room room = draw_room(draw, 8, 4 * largest);
    OneStep score{.margin = Tokens{static_cast<std::int64_t>(draw.below(20'000))}, .workers = 2 + draw.below(64)};
    const Subset& found = search.best(items, room, score);
    const Subset expected = brute_force(items, room, score);
    expect_true_and_fitting(items, room, found);
    require(found.members == expected.members);
    require(found.score == expected.score);
  });
}

Roof draw_roof(Random& draw, std::uint64_t top) {
  return {.top = static_cast<std::int64_t>(draw.below(top)),
          .per_sequence = static_cast<std::int64_t>(draw.below(100)),
          .slope_up = static_cast<std::int64_t>(1 + draw.below(4)),
          .slope_down = static_cast<std::int64_t>(1 + draw.below(50)),
          .gain = static_cast<std::int64_t>(draw.below(300))};
}

// Law: the same for a score that looks at the number of sequences too, as horizon scores do.
TEST(BestSubsetProperty, EqualsFullEnumerationWhenCountsMatter) {
  SubsetSearch search;
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, draw.below(9), 1000);
    const Room room = draw_room(draw, 8, 4000);
    Roof score = draw_roof(draw, 4000);
    const Subset& found = search.best(items, room, score);
    expect_true_and_fitting(items, room, found);
    require(found.score == brute_force(items, room, score).score);
  });
}

// Law: the best single request is the best set of those that have one.
TEST(BestSubsetProperty, BestSingleIsTheBestOfOne) {
  SubsetSearch search;
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, 1 + draw.below(30), 1000);
    const Room room = draw_room(draw, 4, 1000);
    Roof score = draw_roof(draw, 1500);
    double best = -std::numeric_limits<double>::infinity();
    for (const SubsetItem& item : items) {
      if (item.sequences > room.slots || item.kv > room.kv) continue;
      best = std::max(best, score.score(item.weight, item.sequences));
    }
    const Subset& found = search.best_single(items, room, score);
    expect_true_and_fitting(items, room, found);
    require(found.members.size() <= 1);
    require(found.score == best);
  });
}

// Law: the same at the full width that is gone through set by set.
TEST(BestSubsetProperty, EqualsFullEnumerationOfSixteen) {
  SubsetSearch search;
  check_property(20, [&](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, 16, 5000);
    const Room room = draw_room(draw, 20, 30'000);
    OneStep score{.margin = Tokens{static_cast<std::int64_t>(draw.below(30'000))}, .workers = 8};
    const Subset& found = search.best(items, room, score);
    expect_true_and_fitting(items, room, found);
    require(found.members == brute_force(items, room, score).members);
  });
}

// Law: the sums that are found are those of all sets, and each comes with requests that make it.
TEST(ReachableSumsProperty, AreThoseOfAllSets) {
  check_property(10'000, [](std::uint64_t seed) {
    Random draw{seed};
    const auto items = draw_items(draw, draw.below(9), draw.below(2) == 0 ? 30 : 300);
    const auto most = static_cast<std::int32_t>(1 + draw.below(6));
    const Tokens farthest{static_cast<std::int64_t>(draw.below(700))};
    std::vector<std::vector<bool>> reachable(static_cast<std::size_t>(most) + 1,
                                             std::vector<bool>(static_cast<std::size_t>(farthest.count()) + 1));
    for (std::uint32_t bits = 0; bits < (std::uint32_t{1} << items.size()); ++bits) {
      const Subset set = sum_up(items, bits);
      if (set.sequences > most || set.weight > farthest) continue;
      reachable[static_cast<std::size_t>(set.sequences)][static_cast<std::size_t>(set.weight.count())] = true;
    }
    ReachableSums sums;
    sums.fill(items, most, farthest, {.sequences = most, .weight = Tokens{0}});  // met by sets of nothing only
    const auto n = static_cast<std::int32_t>(draw.below(static_cast<std::uint64_t>(most) + 1));
    const Tokens at{static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(farthest.count()) + 1))};
    const std::vector<bool>& row = reachable[static_cast<std::size_t>(n)];
    std::optional<Tokens> below;
    std::optional<Tokens> above;
    for (Tokens w{0}; w <= farthest; w += Tokens{1}) {
      if (!row[static_cast<std::size_t>(w.count())]) continue;
      if (w <= at) below = w;
      if (w >= at && !above) above = w;
    }
    if (sums.last_up_to(most, Tokens{0}) != Tokens{0} || most == 0) {
      require(sums.last_up_to(n, at) == below);
      const auto found = sums.first_from(n, at);
      require(found == above || (!above && found && *found > farthest));  // beyond, not all are known
    }
    if (!below) return;
    std::vector<std::size_t> members;
    sums.members_of({.sequences = n, .weight = *below}, items, members);
    Subset made;
    for (const std::size_t i : members) {
      made.weight += items[i].weight;
      made.sequences += items[i].sequences;
    }
    require(std::ranges::is_sorted(members));
    require(std::ranges::adjacent_find(members) == members.end());
    require(made.weight == *below && made.sequences == n);
  });
}

// Law: with more sets than are gone through, the search by sums finds the best there is, of whatever width, with KV
// space short or not.
TEST(BestSubsetProperty, SumsFindTheBestOfMany) {
  SubsetSearch search{3};  // so that more than 8 sets are many
  check_property(10'000, [&](std::uint64_t seed) {
    Random draw{seed};
    auto items = draw_items(draw, 4 + draw.below(6), 1 + draw.below(60), draw.below(2) == 0);
    const Tokens kv_beside{static_cast<std::int64_t>(draw.below(5))};
    std::int64_t kv = 0;
    for (SubsetItem& item : items) {
      item.kv = item.weight + kv_beside * item.sequences;
      kv += item.kv.count();
    }
    const Room room{.slots = static_cast<std::int32_t>(2 + draw.below(7)),
                    .kv = draw.below(2) == 0
                              ? kUnlimitedKv
                              : Tokens{kv - static_cast<std::int64_t>(draw.below(static_cast<std::uint64_t>(kv) + 1))}};
    Roof score = draw_roof(draw, 300);
    const Subset& found = search.best(items, room, score);
    expect_true_and_fitting(items, room, found);
    require(found.score == brute_force(items, room, score).score);
  });
}

}  // namespace
}  // namespace balanceroute
