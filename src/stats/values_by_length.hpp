// values_by_length.hpp - one measure of many requests, told for all of them and by how long they are: who pays for a
// policy.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "core/units.hpp"
#include "stats/length_buckets.hpp"
#include "stats/quantiles.hpp"

namespace balanceroute {

// Lengths of one request.
struct RequestLengths {
  Tokens prompt;
  Tokens output;
};

// ValuesByLength keeps the values of one measure, parted by the length buckets of prompt and output.
//   Cost     a number a value.
//   Threads  not synchronised.
class ValuesByLength {
 public:
  using ByBucket = std::array<Summary, kLengthBuckets>;

  void record(const RequestLengths& lengths, double value) {
    cells_[length_bucket(lengths.prompt, kPromptBucketEnds)][length_bucket(lengths.output, kOutputBucketEnds)]
        .push_back(value);
  }

  [[nodiscard]] Summary all() const;
  [[nodiscard]] ByBucket by_prompt() const;
  [[nodiscard]] ByBucket by_output() const;

 private:
  std::array<std::array<std::vector<double>, kLengthBuckets>, kLengthBuckets> cells_;  // prompt, then output
};

}  // namespace balanceroute
