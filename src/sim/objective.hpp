// objective.hpp - what a setting can be best in.
#pragma once

#include <span>
#include <string_view>

#include "sim/comparison.hpp"

namespace balanceroute::sim {

// Objective is one figure of a run and which way it is better.
struct Objective {
  std::string_view name;   // value of --objective
  std::string_view title;  // with its unit
  bool more_is_better;
  Measure measure;

  [[nodiscard]] bool better(double ours, double theirs) const { return more_is_better ? ours > theirs : ours < theirs; }
};

// With `auto`.
[[nodiscard]] std::span<const std::string_view> objective_names();

// `auto` is decided by the load.
[[nodiscard]] const Objective& objective_of(std::string_view name, double load);

}  // namespace balanceroute::sim
