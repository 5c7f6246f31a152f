#include "predict/length_history.hpp"

#include <algorithm>

namespace balanceroute {

// Its entry, now the first; the last one makes room for a new key.
LengthHistory::Entry& LengthHistory::entry_of(std::uint64_t key) {
  if (const auto known = place_.find(key); known != place_.end()) {
    entries_.splice(entries_.begin(), entries_, known->second);
    return entries_.front();
  }
  if (place_.size() < max_keys_) {
    entries_.emplace_front();
  } else {
    place_.erase(entries_.back().key);
    entries_.splice(entries_.begin(), entries_, std::prev(entries_.end()));
  }
  entries_.front() = {.key = key};
  place_.emplace(key, entries_.begin());
  return entries_.front();
}

void LengthHistory::add(std::uint64_t key, Tokens length) {
  Entry& entry = entry_of(key);
  entry.lengths[entry.added % kKept] = length;
  ++entry.added;
}

std::span<const Tokens> LengthHistory::of(std::uint64_t key) const {
  const auto known = place_.find(key);
  if (known == place_.end()) return {};
  const Entry& entry = *known->second;
  return std::span{entry.lengths}.first(std::min(entry.added, kKept));
}

}  // namespace balanceroute
