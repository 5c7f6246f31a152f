// live_feed.hpp - the state of the router as a stream of events, for dashboards (docs/live-feed.md).
//
// One writer looks at the fleets, at most ten times a second, and says what has changed; every viewer gets the same
// text. Leaves out what is told: live_view.hpp.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "net/event.hpp"
#include "net/server.hpp"
#include "proxy/generation.hpp"
#include "proxy/live_history.hpp"
#include "proxy/live_view.hpp"
#include "proxy/live_viewer.hpp"

namespace balanceroute::proxy {

// LiveFeed tells viewers the state once and then its changes.
//   Viewers  a viewer that takes less than it is sent loses changes, and gets the whole state when it has caught up:
//   what
//            is kept for it is bounded. At most kMostViewers at once.
//   Cost     with viewers a snapshot of each fleet on the deciding thread every kPeriod; without any one every kIdle,
//            for the history.
//   Threads  serve() on any I/O thread; all else on the first one.
class LiveFeed {
 public:
  static constexpr std::size_t kMostViewers = 16;
  static constexpr net::Duration kPeriod = std::chrono::milliseconds{100};
  static constexpr net::Duration kIdle = std::chrono::seconds{1};
  static constexpr std::size_t kHistorySeconds = 300;

  LiveFeed(ServiceContext& service, const std::atomic<bool>& draining);

  // The writer; begins when threads run, and ends with them. On the first I/O thread.
  net::asio::awaitable<void> write();
  // One viewer, until it leaves.
  net::asio::awaitable<void> serve(net::HttpExchange& exchange);

 private:
  class Presence;

  void join(std::shared_ptr<LiveViewer> viewer);
  void leave(const std::shared_ptr<LiveViewer>& viewer);
  net::asio::awaitable<std::vector<FleetLook>> look();
  void remember(const std::vector<FleetLook>& looks, net::TimePoint now);
  void tell(const std::vector<FleetLook>& looks, net::TimePoint now);
  [[nodiscard]] nlohmann::json head(net::TimePoint now) const;
  static std::string event(std::string_view name, const nlohmann::json& data);
  static net::asio::awaitable<bool> pass_on(net::HttpExchange& exchange, LiveViewer& viewer);

  ServiceContext& service_;
  const std::atomic<bool>& draining_;
  net::IoThread& thread_;
  std::string boot_;  // names this run of the router
  net::TimePoint start_;
  std::atomic<std::size_t> viewers_count_{0};
  std::vector<std::shared_ptr<LiveViewer>> viewers_;
  net::Event joined_;
  std::vector<std::uint64_t> serials_;  // by fleet: the last decision that was told
  nlohmann::json told_;                 // the state that viewers have
  nlohmann::json decisions_;            // of all fleets, the last of them
  nlohmann::json fresh_decisions_;      // that nobody was told yet
  LiveHistory history_{kHistorySeconds};
  net::TimePoint remembered_;
  telemetry::RecentTimes recent_{};
};

}  // namespace balanceroute::proxy
