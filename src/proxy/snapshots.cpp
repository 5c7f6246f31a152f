#include "proxy/snapshots.hpp"

#include <algorithm>
#include <memory>

#include "net/event.hpp"

namespace balanceroute::proxy {

net::asio::awaitable<std::vector<FleetSnapshot>> take_snapshots(net::IoThread& home,
                                                                std::vector<std::unique_ptr<Fleet>>& fleets,
                                                                bool with_leases) {
  struct Reply {
    explicit Reply(net::IoThread& thread) : ready{thread} {}
    net::Event ready;
    FleetSnapshot snapshot;
  };
  std::vector<FleetSnapshot> snapshots;
  for (const auto& fleet : fleets) {
    auto reply = std::make_shared<Reply>(home);
    Dispatcher& dispatcher = fleet->dispatcher();
    dispatcher.decider().dispatch([&home, &dispatcher, reply, with_leases] {
      home.dispatch([reply, snapshot = dispatcher.snapshot(with_leases)]() mutable {
        reply->snapshot = std::move(snapshot);
        reply->ready.set();
      });
    });
    co_await reply->ready.wait();
    snapshots.push_back(std::move(reply->snapshot));
  }
  co_return snapshots;
}

std::size_t ready_workers(const std::vector<FleetSnapshot>& snapshots) {
  std::ptrdiff_t count = 0;
  for (const FleetSnapshot& snapshot : snapshots) {
    count += std::ranges::count_if(snapshot.workers, [](const WorkerRecord& worker) { return worker.eligible; });
  }
  return static_cast<std::size_t>(count);
}

}  // namespace balanceroute::proxy
