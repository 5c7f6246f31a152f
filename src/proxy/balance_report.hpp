// balance_report.hpp - metrics of what the barrier costs and of how decisions are made.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "proxy/dispatcher.hpp"

namespace balanceroute::proxy {

// Of each group: sums over its steps, idle shares of late, the price of a token in a step.
std::vector<prometheus::MetricFamily> balance_families(const std::vector<FleetSnapshot>& snapshots);

// Of each fleet: admissions by rule, times of rounds, how well its predictor does.
std::vector<prometheus::MetricFamily> decision_families(const std::vector<FleetSnapshot>& snapshots);

}  // namespace balanceroute::proxy
