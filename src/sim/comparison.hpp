// comparison.hpp - the runs of an experiment as reports read them: by size and load, then by variant, a seed each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "sim/experiment.hpp"
#include "stats/paired_difference.hpp"

namespace balanceroute::sim {

// One variant's runs at one size and load, a seed each.
using Cell = std::span<const Run>;

// A figure of one run.
using Measure = double (*)(const RunResult&);

[[nodiscard]] MeanInterval mean_of(Cell cell, Measure measure);
// Of the change against `base` in percent, seed by seed.
[[nodiscard]] MeanInterval change_of(Cell cell, Cell base, Measure measure);
[[nodiscard]] bool any_non_stationary(std::span<const Run> runs);

// Block is the runs of one size and load.
class Block {
 public:
  // `runs` is what Experiment::run() gave for this size and load.
  Block(const Experiment& experiment, std::span<const Run> runs);

  [[nodiscard]] std::size_t workers() const { return runs_.front().workers; }
  [[nodiscard]] double load() const { return runs_.front().load; }
  [[nodiscard]] Cell cell(std::size_t variant) const { return runs_.subspan(variant * seeds_, seeds_); }
  // The variant that the others are compared with: least_tokens, or the first one.
  [[nodiscard]] std::size_t base() const { return base_; }

 private:
  std::span<const Run> runs_;
  std::size_t seeds_;
  std::size_t base_ = 0;
};

// In the order of the runs. They must outlive it.
[[nodiscard]] std::vector<Block> blocks_of(const Experiment& experiment, std::span<const Run> runs);

}  // namespace balanceroute::sim
