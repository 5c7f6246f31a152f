// best_subset.hpp - the best set of waiting requests for one worker's free slots, exactly.
//
// Every set that fits is tried once, by adding one request to a smaller one (depth first), so only sets within the
// slots cost anything: with one free slot and 16 requests that is 16 sets, not 65536. Equal sets: the one that a
// reader of the queue meets first, oldest request first.
#pragma once

#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "core/units.hpp"

namespace balanceroute {

struct SubsetItem {
  Tokens weight;
  std::int32_t sequences = 1;
};

// Bit i of `members` is item i. No members: no item fits.
struct Subset {
  std::uint32_t members = 0;
  Tokens weight{0};
  std::int32_t sequences = 0;
  double score = -std::numeric_limits<double>::infinity();
};

inline constexpr std::size_t kMaxSubsetItems = 16;

// SubsetSearch finds the set of at most `free_slots` sequences with the highest score(weight, sequences).
template <std::invocable<Tokens, std::int32_t> Score>
class SubsetSearch {
 public:
  SubsetSearch(std::span<const SubsetItem> items, std::int32_t free_slots, const Score& score)
      : items_{items}, free_slots_{free_slots}, score_{score} {
    assert(items.size() <= kMaxSubsetItems);
  }

  [[nodiscard]] Subset best() {
    extend({}, 0);
    return best_;
  }

 private:
  void extend(const Subset& smaller, std::size_t first) {
    for (std::size_t i = first; i < items_.size(); ++i) {
      if (smaller.sequences + items_[i].sequences > free_slots_) continue;
      Subset larger{.members = smaller.members | (std::uint32_t{1} << i),
                    .weight = smaller.weight + items_[i].weight,
                    .sequences = smaller.sequences + items_[i].sequences};
      larger.score = score_(larger.weight, larger.sequences);
      if (larger.score > best_.score) best_ = larger;
      if (larger.sequences < free_slots_) extend(larger, i + 1);
    }
  }

  std::span<const SubsetItem> items_;
  std::int32_t free_slots_;
  const Score& score_;
  Subset best_;
};

}  // namespace balanceroute
