#include "sim/comparison.hpp"

#include <algorithm>

namespace balanceroute::sim {
namespace {

std::vector<double> values_of(Cell cell, Measure measure) {
  std::vector<double> values;
  for (const Run& run : cell) values.push_back(measure(run.result));
  return values;
}

}  // namespace

MeanInterval mean_of(Cell cell, Measure measure) {
  return mean_interval(values_of(cell, measure));
}

MeanInterval change_of(Cell cell, Cell base, Measure measure) {
  return paired_change_percent(values_of(cell, measure), values_of(base, measure));
}

bool any_non_stationary(std::span<const Run> runs) {
  return std::ranges::any_of(runs, [](const Run& run) { return run.result.non_stationary; });
}

Block::Block(const Experiment& experiment, std::span<const Run> runs)
    : runs_{runs}, seeds_{experiment.params().seeds.size()} {
  const auto variants = experiment.variants();
  const auto plain = std::ranges::find(variants, "least_tokens", [](const Variant& v) { return v.policy.name; });
  if (plain != variants.end()) base_ = static_cast<std::size_t>(plain - variants.begin());
}

std::vector<Block> blocks_of(const Experiment& experiment, std::span<const Run> runs) {
  const std::size_t size = experiment.variants().size() * experiment.params().seeds.size();
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < runs.size(); i += size) blocks.emplace_back(experiment, runs.subspan(i, size));
  return blocks;
}

}  // namespace balanceroute::sim
