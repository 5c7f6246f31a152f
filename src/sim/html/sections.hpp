// sections.hpp - the parts of a simulation's page.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "sim/comparison.hpp"
#include "sim/experiment.hpp"

namespace balanceroute::sim::html {

// Class of a variant's lines, the same in every chart.
[[nodiscard]] std::string style_of(std::size_t variant);

// A value, with the half width of its interval if it has one: "12.3 ± 0.4".
[[nodiscard]] std::string interval_text(const MeanInterval& value);
// The same of a change in percent: "+1.20 ± 0.45".
[[nodiscard]] std::string change_text(const MeanInterval& change);

// What changes with the number of workers and with the load; empty where there is one of each.
[[nodiscard]] std::string sweep_section(const Experiment& experiment, std::span<const Block> blocks);

// Settings of the runs and what the words mean.
[[nodiscard]] std::string reference_section(const Experiment& experiment);

}  // namespace balanceroute::sim::html
