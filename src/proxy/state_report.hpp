// state_report.hpp - the router's state as metrics and as JSON.
#pragma once

#include <optional>
#include <vector>

#include "net/http.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/generation.hpp"

namespace balanceroute::proxy {

// Everything counted and the state of the fleets, in the Prometheus text format.
net::HttpResponse metrics_response(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots);

// Every worker and every live lease, as JSON.
net::HttpResponse ledger_response(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots);

// What an operator may want to know of each worker; of those in `only` if it is given, else of all that are not
// removed.
net::HttpResponse workers_response(int status, const std::vector<FleetSnapshot>& snapshots,
                                   const std::optional<std::vector<WorkerId>>& only = std::nullopt);

// Every worker as each fleet's policy sees it for one request, as JSON.
net::HttpResponse explain_response(const std::vector<FleetExplanation>& explanations);

}  // namespace balanceroute::proxy
