// snapshots.hpp - the state of every fleet, fetched from the deciding thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <vector>

#include "net/io_thread.hpp"
#include "proxy/fleet.hpp"

namespace balanceroute::proxy {

// One snapshot for each fleet, in order; for coroutines on `home`.
net::asio::awaitable<std::vector<FleetSnapshot>> take_snapshots(net::IoThread& home,
                                                                std::vector<std::unique_ptr<Fleet>>& fleets,
                                                                bool with_leases);

// Decode workers that take admissions.
std::size_t ready_workers(const std::vector<FleetSnapshot>& snapshots);

}  // namespace balanceroute::proxy
