// serve_command.cpp - `balanceroute serve`: the router, until it is told to stop.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <iostream>

#include "cli/commands.hpp"
#include "cli/file_watch.hpp"
#include "cli/serve_config.hpp"
#include "cli/termination.hpp"
#include "net/server.hpp"
#include "proxy/service.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::cli {
namespace {

constexpr std::chrono::milliseconds kFileLook{500};

class ServeCommand final : public Command {
 public:
  void declare(CLI::App& app) override { config_.declare(app); }

  std::expected<void, Failure> run() override {
    FileWatches files;  // before anything is read, so that no change is missed
    files.follow({config_.file()});
    auto loaded = config_.load();
    if (!loaded) return std::unexpected(loaded.error());
    watch(files, loaded->params);
    const Termination termination{Termination::Hangup::rereads};
    if (const auto keys = proxy::load_keys(loaded->params); !keys) return bad_usage(keys.error());
    proxy::ServeParams params = loaded->params;
    const auto log =
        telemetry::make_logger("serve", params.log_level,
                               params.log_format == "json" ? telemetry::LogFormat::json : telemetry::LogFormat::text);
    log->info("descriptors limit={}", net::raise_descriptor_limit());
    auto service = proxy::Service::start(params, log, std::move(loaded->origins));
    if (!service) return run_failed(service.error());
    std::cout << (*service)->ready_json() << std::endl;
    log->info("ready {}", (*service)->ready_json());

    serve(**service, *log, termination, files, params);
    log->info("stopping: no new requests, running ones may end within {} ms", params.timeouts.drain_ms);
    return drain(**service, *log, termination, params.timeouts.drain_ms);
  }

 private:
  // Until somebody wants an end. At SIGHUP, or when a file has changed, all are read again.
  void serve(proxy::Service& service, spdlog::logger& log, const Termination& termination, FileWatches& files,
             proxy::ServeParams& params) const {
    for (;;) {
      const auto wish = termination.wait_for(kFileLook);
      if (wish == Termination::Wish::stop) return;
      const bool other_file = files.has_changed();
      if (wish != Termination::Wish::reread && !(other_file && params.reload_on_change)) continue;
      reload(service, log, files, params);
      watch(files, params);
    }
  }

  void watch(FileWatches& files, const proxy::ServeParams& params) const {
    std::vector<std::string> paths = proxy::files_of(params);
    paths.push_back(config_.file());
    files.follow(paths);
  }

  void reload(proxy::Service& service, spdlog::logger& log, FileWatches& files, proxy::ServeParams& params) const {
    auto loaded = config_.load();
    if (!loaded) {
      log.error("reload refused, everything stays as it is: {}", loaded.error().message);
      return;
    }
    watch(files, loaded->params);
    const auto changed = service.reload(loaded->params, std::move(loaded->origins));
    if (!changed) {
      log.error("reload refused: {}", changed.error());
      return;
    }
    log.info("reloaded {}: {}", config_.file(),
             changed->empty() ? "no setting has changed" : fmt::format("{}", fmt::join(*changed, ", ")));
    params = std::move(loaded->params);
  }

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
