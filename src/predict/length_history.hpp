// length_history.hpp - the lengths of the last answers to each of the prompts seen last.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <list>
#include <span>
#include <unordered_map>

#include "core/units.hpp"

namespace balanceroute {

// LengthHistory keeps up to kKept lengths a key, for a bounded number of keys.
//   Bounds      of one key the oldest length makes room, of all keys the one that was longest without an addition.
//   Cost        add and of O(1), amortised.
//   Threads     not synchronised.
class LengthHistory {
 public:
  static constexpr std::size_t kKept = 32;

  explicit LengthHistory(std::size_t max_keys) : max_keys_{max_keys} {}

  void add(std::uint64_t key, Tokens length);
  // In no order; none for a key that is not known.
  [[nodiscard]] std::span<const Tokens> of(std::uint64_t key) const;
  [[nodiscard]] std::size_t keys() const { return place_.size(); }

 private:
  struct Entry {
    std::uint64_t key = 0;
    std::size_t added = 0;  // ever
    std::array<Tokens, kKept> lengths{};
  };
  using Entries = std::list<Entry>;

  [[nodiscard]] Entry& entry_of(std::uint64_t key);

  std::size_t max_keys_;
  Entries entries_;  // the last added to first
  std::unordered_map<std::uint64_t, Entries::iterator> place_;
};

}  // namespace balanceroute
