// best_subset.hpp - the best set of waiting requests for one worker's room, exactly.
//
// The score of a set depends on its total weight and its number of sequences only, and is concave in the weight for
// each number. So of all sets of one number only two can be best: the heaviest up to the weight where the score peaks,
// and the lightest above it. Few sets are gone through one by one (depth first, so only sets within the room
// cost anything); where there are many, ReachableSums finds which sums there are at all.
#pragma once

#include <algorithm>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/group_view.hpp"
#include "core/units.hpp"
#include "policy/two_stage/reachable_sums.hpp"

namespace balanceroute {

// What a set may take of a worker.
struct Room {
  std::int32_t slots = 0;
  Tokens kv = kUnlimitedKv;
};

// No members: no item fits.
struct Subset {
  std::vector<std::size_t> members;  // ascending
  Tokens weight{0};
  std::int32_t sequences = 0;
  double score = -std::numeric_limits<double>::infinity();
};

// ConcaveScore scores sets on one worker.
template <class T>
concept ConcaveScore = requires(T& score, Tokens weight, std::int32_t sequences, std::size_t count) {
  { score.score(weight, sequences) } -> std::same_as<double>;  // concave in weight; higher is better
  { score.peak(sequences) } -> std::same_as<Tokens>;           // the least weight, not below 0, where it is highest
  score.expect(sequences, count);  // about so many calls of score() for that many sequences follow
};

// SubsetSearch finds the set within the room with the highest score; of equal ones, of those next to the peak, the one
// that a reader of the queue meets first, oldest request first.
//   Bounds    where even the sums are too many (ReachableSums::fits), the best of the first so many items for which
//   they
//             are not; so too, of the first `always_tried`, where KV space is short and no fixed function of weight.
//   Cost      a set gone through costs a few comparisons, and each number of sequences one peak and two scores. No
//             allocation once warm.
class SubsetSearch {
 public:
  // Of so many items all sets are gone through, and of more items no more sets than that.
  explicit SubsetSearch(std::size_t always_tried = 16)
      : always_tried_{always_tried}, most_sets_{std::size_t{1} << always_tried} {}

  // Valid until the next call, as is the other.
  template <ConcaveScore Score>
  const Subset& best(std::span<const SubsetItem> items, const Room& room, Score& score) {
    if (items.size() <= always_tried_ || sets_within(items, room) <= most_sets_) return best_tried(items, room, score);
    best_tried(items.first(always_tried_), room, score);
    improve_by_sums(items, room, score);
    return best_;
  }

  template <ConcaveScore Score>
  const Subset& best_single(std::span<const SubsetItem> items, const Room& room, Score& score) {
    start(items, room);
    for (std::size_t i = 0; i < items.size(); ++i) {
      if (fits(items[i], {}, room)) offer(i, {}, items[i], score);
    }
    choose(score);
    return best_;
  }

 private:
  // One set next to a peak.
  struct Near {
    bool found = false;
    Tokens weight{0};
    std::uint64_t met = 0;  // number of the set in the order in which they are gone through
    std::vector<std::size_t> members;
  };
  struct Size {
    bool known = false;
    Tokens peak{0};
    Near below;  // the heaviest up to the peak
    Near above;  // the lightest above it
  };
  struct Taken {
    Tokens weight{0};
    Tokens kv{0};
    std::int32_t sequences = 0;
  };

  static bool fits(const SubsetItem& item, const Taken& taken, const Room& room) {
    return taken.sequences + item.sequences <= room.slots && taken.kv + item.kv <= room.kv;
  }

  static std::int64_t all_sequences(std::span<const SubsetItem> items) {
    std::int64_t sum = 0;
    for (const SubsetItem& item : items) sum += item.sequences;
    return sum;
  }
  static std::int32_t most_sequences(std::span<const SubsetItem> items, const Room& room) {
    return static_cast<std::int32_t>(std::min<std::int64_t>(room.slots, all_sequences(items)));
  }

  // At least the number of sets that fit, or more than most_sets_.
  [[nodiscard]] std::size_t sets_within(std::span<const SubsetItem> items, const Room& room) const {
    const std::int32_t narrowest = std::ranges::min(items, {}, &SubsetItem::sequences).sequences;
    const auto largest = static_cast<std::size_t>(room.slots / narrowest);
    std::size_t sets = 0;
    std::size_t of_size = 1;
    for (std::size_t size = 1; size <= std::min(largest, items.size()) && sets <= most_sets_; ++size) {
      of_size = of_size * (items.size() - size + 1) / size;
      sets += of_size;
    }
    return sets;
  }

  void start(std::span<const SubsetItem> items, const Room& room) {
    met_ = 0;
    path_.clear();
    sizes_used_ = static_cast<std::size_t>(most_sequences(items, room)) + 1;
    while (sizes_.size() < sizes_used_) {
      sizes_.emplace_back();
      sizes_.back().below.members.reserve(std::min(sizes_.size(), always_tried_));
      sizes_.back().above.members.reserve(std::min(sizes_.size(), always_tried_));
    }
    for (Size& size : std::span{sizes_}.first(sizes_used_)) size.known = size.below.found = size.above.found = false;
  }

  template <ConcaveScore Score>
  const Subset& best_tried(std::span<const SubsetItem> items, const Room& room, Score& score) {
    start(items, room);
    extend(items, 0, {}, room, score);
    choose(score);
    return best_;
  }

  template <ConcaveScore Score>
  void extend(std::span<const SubsetItem> items, std::size_t first, const Taken& taken, const Room& room,
              Score& score) {
    for (std::size_t i = first; i < items.size(); ++i) {
      if (!fits(items[i], taken, room)) continue;
      const Taken larger = offer(i, taken, items[i], score);
      if (larger.sequences == room.slots || i + 1 == items.size()) continue;
      path_.push_back(i);
      extend(items, i + 1, larger, room, score);
      path_.pop_back();
    }
  }

  // Notes the set of path_ and this item if it comes closer to the peak of its size.
  template <ConcaveScore Score>
  Taken offer(std::size_t index, const Taken& taken, const SubsetItem& item, Score& score) {
    const Taken set{
        .weight = taken.weight + item.weight, .kv = taken.kv + item.kv, .sequences = taken.sequences + item.sequences};
    ++met_;
    Size& size = sizes_[static_cast<std::size_t>(set.sequences)];
    if (!size.known) {
      size.known = true;
      size.peak = score.peak(set.sequences);
    }
    if (set.weight <= size.peak) {
      if (!size.below.found || set.weight > size.below.weight) note(size.below, set.weight, index);
    } else if (!size.above.found || set.weight < size.above.weight) {
      note(size.above, set.weight, index);
    }
    return set;
  }

  void note(Near& near, Tokens weight, std::size_t last) {
    near.found = true;
    near.weight = weight;
    near.met = met_;
    near.members.assign(path_.begin(), path_.end());
    near.members.push_back(last);
  }

  template <ConcaveScore Score>
  void choose(Score& score) {
    best_.members.clear();
    best_.weight = Tokens{0};
    best_.sequences = 0;
    best_.score = -std::numeric_limits<double>::infinity();
    std::uint64_t best_met = 0;
    for (std::size_t n = 1; n < sizes_used_; ++n) {
      for (const Near* near : {&sizes_[n].below, &sizes_[n].above}) {
        if (!near->found) continue;
        const auto sequences = static_cast<std::int32_t>(n);
        const double its_score = score.score(near->weight, sequences);
        if (its_score < best_.score || (its_score == best_.score && near->met > best_met)) continue;
        best_.members.assign(near->members.begin(), near->members.end());
        best_.weight = near->weight;
        best_.sequences = sequences;
        best_.score = its_score;
        best_met = near->met;
      }
    }
  }

  // --- more sets than can be gone through ---

  // Weights that could beat the best so far with one number of sequences.
  struct Range {
    Tokens low{0};
    Tokens peak{0};
    Tokens high{-1};
    double bound = -std::numeric_limits<double>::infinity();  // no set can score more

    [[nodiscard]] bool empty() const { return high < low; }
  };

  // A sum is worth knowing only if it lies in the range of its number of sequences.
  template <ConcaveScore Score>
  void improve_by_sums(std::span<const SubsetItem> items, const Room& room, Score& score) {
    const std::optional<KvRule> kv = kv_rule(items, room);
    if (!kv) return;
    const std::int32_t most = most_sequences(items, room);
    heaviest_.clear();
    for (const SubsetItem& item : items) heaviest_.push_back(item.weight);
    std::ranges::sort(heaviest_, std::greater{});
    ranges_.assign(1, {});
    Tokens heaviest_set{0};
    Tokens farthest{-1};  // none
    for (std::int32_t n = 1; n <= most; ++n) {
      if (static_cast<std::size_t>(n) <= heaviest_.size()) heaviest_set += heaviest_[static_cast<std::size_t>(n) - 1];
      const Tokens limit = std::min(heaviest_set, kv->at_zero - kv->by_sequence * n);
      ranges_.push_back(range_above(best_.score, n, limit, score));
      farthest = std::max(farthest, ranges_.back().high);
    }
    if (farthest < Tokens{0}) return;
    const std::size_t affordable = sums_.affordable(most, farthest);
    if (affordable <= always_tried_) return;
    items = items.first(std::min(items.size(), affordable));
    take_best_sum(items, most, farthest, score);
  }

  // The weight that KV space leaves to n sequences: at_zero - n * by_sequence.
  struct KvRule {
    Tokens at_zero{0};
    Tokens by_sequence{0};
  };

  // None where space is short and no such rule says what fits: it must take the same beside the weight of each
  // sequence.
  [[nodiscard]] static std::optional<KvRule> kv_rule(std::span<const SubsetItem> items, const Room& room) {
    Tokens all{0};
    for (const SubsetItem& item : items) all += item.kv;
    if (all <= room.kv) return KvRule{.at_zero = kUnlimitedKv};
    const Tokens beside{(items.front().kv - items.front().weight).count() / items.front().sequences};
    const bool same = std::ranges::all_of(
        items, [beside](const SubsetItem& item) { return item.kv == item.weight + beside * item.sequences; });
    if (!same) return std::nullopt;
    return KvRule{.at_zero = room.kv, .by_sequence = beside};
  }

  template <ConcaveScore Score>
  static Range range_above(double least, std::int32_t sequences, Tokens limit, Score& score) {
    if (limit < Tokens{0}) return {};
    score.expect(sequences, 2 * std::bit_width(static_cast<std::uint64_t>(limit.count())));
    const auto beats = [&](Tokens weight) { return score.score(weight, sequences) > least; };
    Range range;
    range.peak = std::min(score.peak(sequences), limit);
    range.bound = score.score(range.peak, sequences);
    if (range.bound <= least) return {};
    range.low = beats(Tokens{0}) ? Tokens{0} : border(Tokens{0}, range.peak, beats) + Tokens{1};
    range.high = beats(limit) ? limit : border(range.peak, limit, [&](Tokens weight) { return !beats(weight); });
    return range;
  }

  // The last weight from `low` on, below `high`, where `turned` is not yet true; it is not at `low` and is at `high`.
  template <class Turned>
  static Tokens border(Tokens low, Tokens high, const Turned& turned) {
    while (high - low > Tokens{1}) {
      const Tokens middle = low + Tokens{(high - low).count() / 2};
      (turned(middle) ? high : low) = middle;
    }
    return low;
  }

  template <ConcaveScore Score>
  void take_best_sum(std::span<const SubsetItem> items, std::int32_t most, Tokens farthest, Score& score) {
    const auto highest = std::ranges::max_element(ranges_, {}, &Range::bound);
    const auto ideal = static_cast<std::int32_t>(highest - ranges_.begin());
    sums_.fill(items, most, farthest, {.sequences = ideal, .weight = highest->peak});
    Sum best{};
    for (std::int32_t n = 1; n <= most; ++n) {
      const Range& range = ranges_[static_cast<std::size_t>(n)];
      if (range.empty()) continue;
      for (const std::optional<Tokens> sum :
           {sums_.last_up_to(n, range.peak), sums_.first_from(n, range.peak + Tokens{1})}) {
        if (!sum || *sum < range.low || *sum > range.high) continue;
        const double its_score = score.score(*sum, n);
        if (its_score <= best_.score) continue;
        best_.score = its_score;
        best = {.sequences = n, .weight = *sum};
      }
    }
    if (best.sequences == 0) return;
    best_.weight = best.weight;
    best_.sequences = best.sequences;
    sums_.members_of(best, items, best_.members);
  }

  std::size_t always_tried_;
  std::size_t most_sets_;
  Subset best_;
  std::vector<Size> sizes_;  // by number of sequences
  std::size_t sizes_used_ = 0;
  std::vector<std::size_t> path_;
  std::uint64_t met_ = 0;

  std::vector<Tokens> heaviest_;
  std::vector<Range> ranges_;  // by number of sequences
  ReachableSums sums_;
};

}  // namespace balanceroute
