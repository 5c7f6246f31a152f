// length_buckets.hpp - the classes of lengths that figures are told by, the same everywhere.
#pragma once

#include <array>
#include <cstddef>

#include "core/units.hpp"

namespace balanceroute {

// Largest length of each class but the last, which has none.
inline constexpr std::array kPromptBucketEnds{Tokens{512}, Tokens{2048}, Tokens{8192}, Tokens{32'768}};
inline constexpr std::array kOutputBucketEnds{Tokens{128}, Tokens{512}, Tokens{2048}, Tokens{8192}};
inline constexpr std::size_t kLengthBuckets = kPromptBucketEnds.size() + 1;

using LengthBucketEnds = std::array<Tokens, kLengthBuckets - 1>;

// From 0, for the shortest, to kLengthBuckets - 1.
[[nodiscard]] constexpr std::size_t length_bucket(Tokens length, const LengthBucketEnds& ends) {
  std::size_t bucket = 0;
  while (bucket < ends.size() && length > ends[bucket]) ++bucket;
  return bucket;
}

}  // namespace balanceroute
