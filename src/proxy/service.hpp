// service.hpp - the running router: its threads, fleets and listeners, put together from the settings.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <vector>

#include "net/io_thread.hpp"
#include "net/server.hpp"
#include "proxy/admin.hpp"
#include "proxy/fleet.hpp"
#include "proxy/frontend.hpp"
#include "proxy/generation.hpp"
#include "proxy/live_feed.hpp"
#include "proxy/live_settings.hpp"
#include "proxy/serve_params.hpp"
#include "telemetry/metrics.hpp"

namespace balanceroute::proxy {

// Service serves clients from start() to its end.
//   Threads  the public functions are for the owner's thread, which must not be one of the service's own.
class Service {
 public:
  // `params` has passed problems_of().
  static std::expected<std::unique_ptr<Service>, std::string> start(ServeParams params,
                                                                    std::shared_ptr<spdlog::logger> log,
                                                                    Origins origins = {});
  ~Service();
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  std::uint16_t client_port() const { return client_port_; }
  std::uint16_t admin_port() const { return admin_port_; }
  // {"listen": "127.0.0.1:8080", "admin": "127.0.0.1:8081"} with the ports that were bound.
  std::string ready_json() const;

  // Puts `next`, which has passed problems_of(), in effect, and what the files with keys have now: the paths of the
  // settings that changed, and the names of the keys. If one of them can only be set at a start, or such a file is
  // faulty, nothing is changed, and the error says which.
  std::expected<std::vector<std::string>, std::string> reload(ServeParams next, Origins origins);

  // Readiness fails and nothing new is accepted; true when every running request ended within `longest`.
  bool drain(net::Duration longest);

 private:
  Service(ServeParams params, std::shared_ptr<spdlog::logger> log, Origins origins, ApiKeys keys);
  std::expected<void, std::string> build(const std::vector<std::string>& engine_keys);
  void look_at_workers();
  std::expected<std::uint16_t, std::string> listen(net::HttpServer& server, const std::string& address);

  LiveSettings params_;
  std::shared_ptr<spdlog::logger> log_;
  net::SteadyClock clock_;
  telemetry::RouterMetrics metrics_;
  std::atomic<bool> draining_{false};
  net::IoThreads threads_;
  std::unique_ptr<net::IoThread> own_decider_;  // none when the one I/O thread decides too
  net::IoThread& decider_;
  std::vector<std::unique_ptr<Fleet>> fleets_;  // their connections go before the threads' loops do
  BackgroundTasks background_;
  CallbackBoard callbacks_;
  std::uint16_t client_port_ = 0;
  ServiceContext context_;
  StatusRoutes status_;
  Frontend frontend_;
  LiveFeed feed_;
  Admin admin_;
  std::unique_ptr<net::HttpServer> client_server_;
  std::unique_ptr<net::HttpServer> admin_server_;
  std::uint16_t admin_port_ = 0;
};

}  // namespace balanceroute::proxy
