#include "proxy/status_routes.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "proxy/snapshots.hpp"
#include "proxy/state_report.hpp"

namespace balanceroute::proxy {
namespace {

constexpr std::array<std::string_view, 5> kPaths{"/health", "/health/live", "/health/ready", "/metrics", "/version"};

net::HttpResponse version_response() {
  return net::json_response(200, R"({"version":")" BALANCEROUTE_VERSION R"("})");
}

// 200, or 503 with the reason.
net::HttpResponse readiness(bool draining, const std::vector<FleetSnapshot>& snapshots) {
  nlohmann::ordered_json body;
  std::ptrdiff_t total = 0;
  for (const FleetSnapshot& fleet : snapshots) {
    total += std::ranges::count_if(fleet.workers, [](const auto& one) { return one.state != WorkerState::removed; });
  }
  const std::size_t ready_count = ready_workers(snapshots);
  const bool ready = !draining && ready_count > 0;
  body["status"] = draining ? "draining" : ready ? "ready" : "no worker is ready";
  body["workers"] = total;
  body["workers_ready"] = ready_count;
  return net::json_response(ready ? 200 : 503, body.dump());
}

}  // namespace

bool StatusRoutes::has(std::string_view path) {
  return std::ranges::find(kPaths, path) != kPaths.end();
}

net::asio::awaitable<void> StatusRoutes::serve(net::HttpExchange& exchange, std::string_view path) {
  if (path == "/version") {
    co_await exchange.respond(version_response());
    co_return;
  }
  if (path == "/health/live") {
    co_await exchange.respond(net::json_response(200, R"({"status":"live"})"));
    co_return;
  }
  const auto snapshots = co_await take_snapshots(exchange.thread(), service_.fleets, false);
  net::HttpResponse response =
      path == "/metrics" ? metrics_response(service_, snapshots) : readiness(draining_, snapshots);
  co_await exchange.respond(std::move(response));
}

}  // namespace balanceroute::proxy
