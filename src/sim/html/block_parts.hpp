// block_parts.hpp - what the section of one size and load is made of.
#pragma once

#include <string>

#include "sim/comparison.hpp"
#include "sim/experiment.hpp"

namespace balanceroute::sim::html {

// Mean over a cell's runs of what `read` gives for each.
template <class Read>
[[nodiscard]] double seeds_mean(Cell cell, const Read& read) {
  double sum = 0;
  for (const Run& run : cell) sum += read(run.result);
  return sum / static_cast<double>(cell.size());
}

[[nodiscard]] std::string comparison_table(const Experiment& experiment, const Block& block);
[[nodiscard]] std::string idle_bars(const Experiment& experiment, const Block& block);
[[nodiscard]] std::string lengths_tables(const Experiment& experiment, const Block& block);

// Loads of all workers over time, a panel a policy, all to one scale; none without recorded trajectories.
[[nodiscard]] std::string trajectory_panels(const Experiment& experiment, const Block& block);
// Step time and imbalance over time, a line a policy.
[[nodiscard]] std::string curves(const Experiment& experiment, const Block& block);

}  // namespace balanceroute::sim::html
