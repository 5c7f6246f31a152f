// serve_command.cpp - `balanceroute serve`: the router, until it is told to stop.
#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/serve_config.hpp"
#include "cli/termination.hpp"
#include "net/server.hpp"
#include "proxy/service.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::cli {
namespace {

class ServeCommand final : public Command {
 public:
  void declare(CLI::App& app) override { config_.declare(app); }

  std::expected<void, Failure> run() override {
    const auto loaded = config_.load();
    if (!loaded) return std::unexpected(loaded.error());
    const Termination termination;
    const proxy::ServeParams& params = loaded->params;
    const auto log = telemetry::make_logger("serve", params.log_level);
    log->info("descriptors limit={}", net::raise_descriptor_limit());
    auto service = proxy::Service::start(params, log);
    if (!service) return run_failed(service.error());
    std::cout << (*service)->ready_json() << std::endl;
    log->info("ready {}", (*service)->ready_json());

    termination.wait();
    log->info("stopping: no new requests, running ones may end within {} ms", params.timeouts.drain_ms);
    return drain(**service, *log, termination, params.timeouts.drain_ms);
  }

 private:
  // Looks up now and then, so that a second signal ends the wait.
  static std::expected<void, Failure> drain(proxy::Service& service, spdlog::logger& log,
                                            const Termination& termination, double drain_ms) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double, std::milli>{drain_ms};
    while (std::chrono::steady_clock::now() < deadline) {
      if (service.drain(std::chrono::milliseconds{100})) {
        log.info("stopped: every request ended");
        return {};
      }
      if (termination.requests() > 1) break;
    }
    log.warn("stopped: running requests were cut");
    return {};
  }

  ServeConfig config_;
};

}  // namespace

std::unique_ptr<Command> make_serve_command() {
  return std::make_unique<ServeCommand>();
}

}  // namespace balanceroute::cli
