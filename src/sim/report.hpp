// report.hpp - the results of an experiment as text: a table for people, JSON for programs, a page for a browser.
//
// The same results give the same bytes; real time is told only on request.
#pragma once

#include <span>
#include <string>

#include "sim/experiment.hpp"

namespace balanceroute::sim {

// One block a size and load: means over seeds, and the change of each policy against least_tokens (else the first one)
// with its 95 % interval over seeds.
[[nodiscard]] std::string table_report(const Experiment& experiment, std::span<const Run> runs);

[[nodiscard]] std::string json_report(const Experiment& experiment, std::span<const Run> runs);

// One page that needs nothing else: comparison, loads of the workers over time, curves, scale-up, settings.
[[nodiscard]] std::string html_report(const Experiment& experiment, std::span<const Run> runs);

}  // namespace balanceroute::sim
