#include "stats/values_by_length.hpp"

#include <utility>

namespace balanceroute {
namespace {

void append(std::vector<double>& all, const std::vector<double>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

}  // namespace

Summary ValuesByLength::all() const {
  std::vector<double> values;
  for (const auto& row : cells_) {
    for (const auto& cell : row) append(values, cell);
  }
  return summarize(std::move(values));
}

ValuesByLength::ByBucket ValuesByLength::by_prompt() const {
  ByBucket told;
  for (std::size_t prompt = 0; prompt < kLengthBuckets; ++prompt) {
    std::vector<double> values;
    for (const auto& cell : cells_[prompt]) append(values, cell);
    told[prompt] = summarize(std::move(values));
  }
  return told;
}

ValuesByLength::ByBucket ValuesByLength::by_output() const {
  ByBucket told;
  for (std::size_t output = 0; output < kLengthBuckets; ++output) {
    std::vector<double> values;
    for (const auto& row : cells_) append(values, row[output]);
    told[output] = summarize(std::move(values));
  }
  return told;
}

}  // namespace balanceroute
