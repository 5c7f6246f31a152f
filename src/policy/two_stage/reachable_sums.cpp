#include "policy/two_stage/reachable_sums.hpp"

#include <algorithm>
#include <bit>
#include <cassert>

namespace balanceroute {

std::size_t ReachableSums::affordable(std::int32_t most_sequences, Tokens farthest) {
  const std::int64_t row_words = words_for(farthest);
  if (row_words > kMostWords / (std::int64_t{most_sequences} + 1)) return 0;
  return static_cast<std::size_t>(kMostWork / (row_words * most_sequences));
}

bool ReachableSums::has(const Sum& sum) const {
  const auto at = static_cast<std::size_t>(sum.weight.count());
  return (row(sum.sequences)[at / kBits] >> (at % kBits) & 1) != 0;
}

// Rows of more sequences first: each reads one that has not seen this item.
void ReachableSums::add(const SubsetItem& item) {
  const auto shift = static_cast<std::size_t>(item.weight.count());
  const std::size_t whole = shift / kBits;
  if (whole >= words_) return;
  const auto part = static_cast<unsigned>(shift % kBits);
  for (std::int32_t n = most_sequences_; n >= item.sequences; --n) {
    const std::uint64_t* const from = row(n - item.sequences).data();
    std::uint64_t* const to = row(n).data() + whole;
    const std::size_t count = words_ - whole;
    if (part == 0) {
      for (std::size_t i = 0; i < count; ++i) to[i] |= from[i];
      continue;
    }
    to[0] |= from[0] << part;
    for (std::size_t i = 1; i < count; ++i) to[i] |= from[i] << part | from[i - 1] >> (kBits - part);
  }
}

void ReachableSums::fill(std::span<const SubsetItem> items, std::int32_t most_sequences, Tokens farthest,
                         const Sum& ideal) {
  most_sequences_ = most_sequences;
  words_ = static_cast<std::size_t>(words_for(farthest));
  bits_.assign((static_cast<std::size_t>(most_sequences) + 1) * words_, 0);
  bits_[0] = 1;
  for (const SubsetItem& item : items) {
    add(item);
    if (has(ideal)) return;
  }
}

std::optional<Tokens> ReachableSums::last_up_to(std::int32_t sequences, Tokens weight) const {
  const auto at = static_cast<std::size_t>(weight.count());
  const std::span<const std::uint64_t> its = row(sequences);
  std::size_t word = std::min(at / kBits, words_ - 1);
  std::uint64_t bits = its[word];
  if (word == at / kBits) bits &= ~std::uint64_t{0} >> (kBits - 1 - static_cast<std::int64_t>(at % kBits));
  while (bits == 0 && word > 0) bits = its[--word];
  if (bits == 0) return std::nullopt;
  return Tokens{static_cast<std::int64_t>(word) * kBits + static_cast<std::int64_t>(std::bit_width(bits)) - 1};
}

std::optional<Tokens> ReachableSums::first_from(std::int32_t sequences, Tokens weight) const {
  const auto at = static_cast<std::size_t>(weight.count());
  const std::span<const std::uint64_t> its = row(sequences);
  std::size_t word = at / kBits;
  if (word >= words_) return std::nullopt;
  std::uint64_t bits = its[word] & (~std::uint64_t{0} << (at % kBits));
  while (bits == 0 && ++word < words_) bits = its[word];
  if (bits == 0) return std::nullopt;
  return Tokens{static_cast<std::int64_t>(word) * kBits + std::countr_zero(bits)};
}

// The item that completes the sum, as items come in, is one of it; the rest are found among those before it.
void ReachableSums::members_of(Sum sum, std::span<const SubsetItem> items, std::vector<std::size_t>& members) {
  members.clear();
  while (sum.sequences > 0) {
    fill({}, sum.sequences, sum.weight, {});
    std::size_t last = 0;
    for (add(items[last]); !has(sum); add(items[last])) {
      ++last;
      assert(last < items.size());
    }
    members.push_back(last);
    sum.sequences -= items[last].sequences;
    sum.weight -= items[last].weight;
    items = items.first(last);
  }
  std::ranges::reverse(members);
}

}  // namespace balanceroute
