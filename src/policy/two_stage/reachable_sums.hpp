// reachable_sums.hpp - which total weights sets of requests can have, for each number of sequences.
//
// One bit a weight: with each request the sums of n - its sequences, moved up by its weight, become sums of n. Which
// requests make a sum is found by asking again with fewer of them, so nothing is kept but the bits.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "core/units.hpp"

namespace balanceroute {

struct SubsetItem {
  Tokens weight;
  std::int32_t sequences = 1;
  Tokens kv{0};
};

// A number of sequences and their total weight.
struct Sum {
  std::int32_t sequences = 0;
  Tokens weight{0};

  friend bool operator==(const Sum&, const Sum&) = default;
};

// ReachableSums holds the sums of sets of items up to a weight and a number of sequences.
//   Cost     fill O(items * sequences * weight / 64) words at most, members_of that for each member; no allocation once
//            as many words were used.
class ReachableSums {
 public:
  // Words of bits held, and words gone through by one fill: 4 MiB, and a few milliseconds.
  static constexpr std::int64_t kMostWords = std::int64_t{1} << 19;
  static constexpr std::int64_t kMostWork = std::int64_t{1} << 24;

  // How many items fill() may be given for sums so large; none if there are too many of these.
  [[nodiscard]] static std::size_t affordable(std::int32_t most_sequences, Tokens farthest);

  // Finds the sums of up to so many sequences and such weight. Ends early when `ideal` is among them.
  void fill(std::span<const SubsetItem> items, std::int32_t most_sequences, Tokens farthest, const Sum& ideal);

  // The nearest sum at or below, at or above a weight, as far as fill() looked.
  [[nodiscard]] std::optional<Tokens> last_up_to(std::int32_t sequences, Tokens weight) const;
  [[nodiscard]] std::optional<Tokens> first_from(std::int32_t sequences, Tokens weight) const;

  // Items with this sum, which is one of those of `items`; ascending. The sums found before are lost.
  void members_of(Sum sum, std::span<const SubsetItem> items, std::vector<std::size_t>& members);

 private:
  static std::int64_t words_for(Tokens farthest) { return farthest.count() / kBits + 1; }
  static constexpr std::int64_t kBits = 64;

  [[nodiscard]] std::span<std::uint64_t> row(std::int32_t sequences) {
    return std::span{bits_}.subspan(static_cast<std::size_t>(sequences) * words_, words_);
  }
  [[nodiscard]] std::span<const std::uint64_t> row(std::int32_t sequences) const {
    return std::span{bits_}.subspan(static_cast<std::size_t>(sequences) * words_, words_);
  }
  [[nodiscard]] bool has(const Sum& sum) const;
  void add(const SubsetItem& item);

  std::vector<std::uint64_t> bits_;  // a row of words_ for 0, 1, ... sequences
  std::size_t words_ = 0;
  std::int32_t most_sequences_ = 0;
};

}  // namespace balanceroute
