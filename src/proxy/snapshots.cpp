#include "proxy/snapshots.hpp"

#include <algorithm>

namespace balanceroute::proxy {

net::asio::awaitable<std::vector<FleetSnapshot>> take_snapshots(net::IoThread& home,
                                                                std::vector<std::unique_ptr<Fleet>>& fleets,
                                                                bool with_leases) {
  return ask_fleets(home, fleets, [with_leases](Fleet& fleet) { return fleet.snapshot(with_leases); });
}

std::size_t ready_workers(const std::vector<FleetSnapshot>& snapshots) {
  std::ptrdiff_t count = 0;
  for (const FleetSnapshot& snapshot : snapshots) {
    count += std::ranges::count_if(snapshot.workers, [](const WorkerRecord& worker) { return worker.eligible; });
  }
  return static_cast<std::size_t>(count);
}

}  // namespace balanceroute::proxy
