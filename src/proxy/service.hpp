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
  // `params` has passed problems_of(); a `clock` of the owner's outlives it, else it has one of its own.
  static std::expected<std::unique_ptr<Service>, std::string> start(ServeParams params,
                                                                    std::shared_ptr<spdlog::logger> log,
                                                                    Origins origins = {},
                                                                    const net::Clock* clock = nullptr);
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

  // For the owner of a clock that does not move by itself: does what is due by now.
  void follow_clock();

 private:
  Service(LiveSettings::Version settings, std::shared_ptr<spdlog::logger> log, const net::Clock* clock);
  std::expected<void, std::string> build(const LoadedKeys& loaded);
  // The names of what is other than before.
  std::vector<std::string> use_certificates(const LoadedKeys& loaded);
  void warn_of_certificates() const;
  // With what its history says.
  void warm(Fleet& fleet);
  net::ServerOptions server_options();
  void look_at_workers();
  void send_last_spans();
  std::expected<std::uint16_t, std::string> listen(net::HttpServer& server, const std::string& address);

  LiveSettings params_;
  std::shared_ptr<spdlog::logger> log_;
  net::SteadyClock own_clock_;
  const net::Clock& clock_;
  telemetry::RouterMetrics metrics_;
  RequestHistory history_;
  std::atomic<bool> draining_{false};
  net::IoThreads threads_;
  std::unique_ptr<net::IoThread> own_decider_;  // none when the one I/O thread decides too
  net::IoThread& decider_;
  SpanExporter spans_;                          // its connections go before the threads' loops do
  std::vector<std::unique_ptr<Fleet>> fleets_;  // and so do theirs
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
