// fallback_report.hpp - metrics of policies that give way, and of those that are asked beside the one that decides.
#pragma once

#include <prometheus/metric_family.h>

#include <vector>

#include "proxy/dispatcher.hpp"

namespace balanceroute::proxy {

// Of each fleet: why a simpler policy decides, how often that has been, and what led to it.
std::vector<prometheus::MetricFamily> fallback_families(const std::vector<FleetSnapshot>& snapshots);

// Of each fleet with a shadow.
std::vector<prometheus::MetricFamily> shadow_families(const std::vector<FleetSnapshot>& snapshots);

}  // namespace balanceroute::proxy
