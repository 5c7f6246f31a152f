#include "proxy/service.hpp"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <chrono>
#include <future>
#include <memory>
#include <nlohmann/json.hpp>
#include <thread>
#include <utility>

#include "config/setting_values.hpp"
#include "proxy/openai_error.hpp"
#include "telemetry/log.hpp"

namespace balanceroute::proxy {

namespace {

// Kept for a dashboard that reads slowly, before it loses changes.
constexpr std::size_t kAdminBuffer = 256 * 1024;

std::size_t thread_count(const ServeParams& params) {
  if (params.io_threads != ServeParams::kAuto) return static_cast<std::size_t>(params.io_threads);
  return std::max(1U, std::thread::hardware_concurrency()) - (std::thread::hardware_concurrency() > 1 ? 1 : 0);
}

net::Duration milliseconds(double count) {
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{count});
}

net::asio::awaitable<void> flush_and_tell(SpanExporter& spans, net::TimePoint deadline,
                                          std::shared_ptr<std::promise<void>> sent) {
  co_await spans.flush(deadline);
  sent->set_value();
}

std::string failure_text(const std::exception_ptr& failure) {
  try {
    std::rethrow_exception(failure);
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "unknown exception";
  }
}

// Workers, policies and waits may; what is bound, started or counted by from the start on may not.
bool may_change_while_running(std::string_view path) {
  if (path == "log_level" || path == "reload_on_change" || path == "limits.waiting_requests" ||
      path.starts_with("health.") || path.starts_with("retries.") || path.starts_with("fallback.") ||
      path.starts_with("keys.") || path.starts_with("tls.") || path.starts_with("admin.tls.") ||
      path.find("].engine_key.") != std::string_view::npos || path.find("].tls.") != std::string_view::npos)
    return true;
  if (path == "timeouts.connect_ms" || path == "timeouts.worker_idle_ms" || path == "timeouts.client_stall_ms" ||
      path == "timeouts.head_ms" || path == "timeouts.body_ms")
    return false;
  if (path.starts_with("timeouts.")) return true;
  if (!path.starts_with("fleets[")) return false;
  const bool of_policy = path.find("].policy.") != std::string_view::npos;
  return of_policy || path.find("].workers[") != std::string_view::npos;
}

}  // namespace

Service::Service(LiveSettings::Version settings, std::shared_ptr<spdlog::logger> log, const net::Clock* clock)
    : params_{std::move(settings)},
      log_{std::move(log)},
      clock_{clock != nullptr ? *clock : own_clock_},
      history_{params_->history, log_},
      threads_{thread_count(*params_), "br-io", clock_},
      own_decider_{threads_.size() > 1 ? std::make_unique<net::IoThread>("br-decide", clock_) : nullptr},
      decider_{own_decider_ ? *own_decider_ : threads_.at(0)},
      spans_{params_->tracing, threads_.at(0), *log_},
      background_{threads_, [this](const std::exception_ptr& failure) { log_->warn("{}", failure_text(failure)); }},
      context_{clock_,      threads_,   params_, metrics_,     *log_,   fleets_,
               background_, callbacks_, spans_,  client_port_, history_},
      status_{context_, draining_},
      frontend_{context_, status_},
      feed_{context_, draining_},
      admin_{context_, status_, feed_} {}

std::expected<std::unique_ptr<Service>, std::string> Service::start(ServeParams params,
                                                                    std::shared_ptr<spdlog::logger> log,
                                                                    Origins origins, const net::Clock* clock) {
  auto loaded = load_keys(params);
  if (!loaded) return std::unexpected(loaded.error());
  auto ends = loaded->certificate_ends(params);
  std::unique_ptr<Service> service{
      new Service{{std::move(params), std::move(origins), loaded->clients, std::move(ends)}, std::move(log), clock}};
  if (const auto built = service->build(*loaded); !built) return std::unexpected(built.error());
  return service;
}

net::ServerOptions Service::server_options() {
  const LimitParams& limits = params_->limits;
  net::ServerOptions options;
  options.limits = {.head_bytes = static_cast<std::size_t>(limits.head_bytes),
                    .head_fields = static_cast<std::size_t>(limits.head_fields),
                    .body_bytes = static_cast<std::uint64_t>(limits.body_bytes)};
  options.head_timeout = milliseconds(params_->timeouts.head_ms);
  options.body_timeout = milliseconds(params_->timeouts.body_ms);
  options.client_stall = milliseconds(params_->timeouts.client_stall_ms);
  options.error_response = http_error_response;
  options.log_failure = [log = log_](std::string_view what) { log->warn("{}", what); };
  options.refused = [this](int status, std::string_view detail, const std::string& peer) {
    metrics_.refused(status);
    log_->info("refused client={} status={} reason={}", peer, status, telemetry::log_value(detail));
  };
  options.tls_failed = [this](std::string_view what) {
    metrics_.tls_failed();
    log_->info("{}", what);
  };
  return options;
}

std::expected<void, std::string> Service::build(const LoadedKeys& loaded) {
  for (std::size_t f = 0; f < params_->fleets.size(); ++f) {
    auto made =
        Fleet::make(params_->fleets[f], *params_, {loaded.engines[f], loaded.workers[f]}, decider_, threads_, *log_);
    if (!made) return std::unexpected(made.error());
    fleets_.push_back(std::move(*made));
    fleets_.back()->set_tenants(params_.current().keys.tenants());
    warm(*fleets_.back());
  }
  net::ServerOptions for_clients = server_options();
  for_clients.max_connections = params_->limits.connections == LimitParams::kAuto
                                    ? net::connections_for_descriptors()
                                    : static_cast<std::size_t>(params_->limits.connections);
  for_clients.max_connections_per_address = static_cast<std::size_t>(params_->limits.connections_per_address);
  for_clients.wants_body = [this](const net::HttpRequest& head) { return frontend_.wants_body(head); };
  client_server_ = std::make_unique<net::HttpServer>(
      threads_, std::move(for_clients), [this](net::HttpExchange& exchange) { return frontend_.handle(exchange); });
  net::ServerOptions for_admin = server_options();
  for_admin.write_buffer_bytes = kAdminBuffer;
  admin_server_ = std::make_unique<net::HttpServer>(
      threads_, std::move(for_admin), [this](net::HttpExchange& exchange) { return admin_.handle(exchange); });
  client_server_->use_tls(loaded.listen);
  admin_server_->use_tls(loaded.admin);
  warn_of_certificates();
  const auto client_port = listen(*client_server_, params_->listen);
  if (!client_port) return std::unexpected(client_port.error());
  const auto admin_port = listen(*admin_server_, params_->admin.listen);
  if (!admin_port) return std::unexpected(admin_port.error());
  client_port_ = *client_port;
  admin_port_ = *admin_port;
  if (own_decider_) own_decider_->start();
  threads_.start();
  threads_.at(0).call([this] {
    background_.on(0).spawn(feed_.write());
    if (spans_.on()) background_.on(0).spawn(spans_.run());
  });
  look_at_workers();
  return {};
}

void Service::warm(Fleet& fleet) {
  if (!history_.on()) return;
  const auto began = std::chrono::steady_clock::now();
  const auto past = history_.latest(fleet.name(), params_->history.warm_start_requests);
  fleet.learn(past);
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - began);
  log_->info("fleet={} learned from {} requests of its history in {} ms", fleet.name(), past.size(), took.count());
}

std::vector<std::string> Service::use_certificates(const LoadedKeys& loaded) {
  std::vector<std::string> changed;
  if (client_server_->use_tls(loaded.listen)) changed.push_back("certificate of listen");
  if (admin_server_->use_tls(loaded.admin)) changed.push_back("certificate of admin.listen");
  for (std::size_t f = 0; f < fleets_.size(); ++f) {
    const bool other = fleets_[f]->use_tls(loaded.workers[f], params_->fleets[f].tls.server_name);
    if (other) changed.push_back("certificates for fleet " + fleets_[f]->name());
  }
  return changed;
}

void Service::warn_of_certificates() const {
  constexpr auto kSoon = std::chrono::days{7};
  const auto now = std::chrono::system_clock::now();
  for (const CertificateEnd& one : params_.current().certificates) {
    const auto left = std::chrono::duration_cast<std::chrono::hours>(one.expires - now).count();
    if (one.expires <= now) {
      log_->warn("the certificate of {} has expired: clients that check it will refuse it", one.owner);
    } else if (one.expires - now < kSoon) {
      log_->warn("the certificate of {} expires in {} hours", one.owner, left);
    }
  }
}

// So that whoever reads that the router is ready can use it at once, or reads what is missing.
void Service::look_at_workers() {
  const std::chrono::duration<double, std::milli> longest{params_->health.timeout_ms};
  for (const auto& fleet : fleets_) {
    fleet->membership().wait_for_first_look(std::chrono::duration_cast<net::Duration>(longest));
    decider_.call([&] { fleet->membership().log_summary(); });
  }
}

std::expected<std::uint16_t, std::string> Service::listen(net::HttpServer& server, const std::string& address) {
  const auto parsed = parse_listen_address(address);
  if (!parsed) return std::unexpected(address + ": " + parsed.error());
  const auto bound = server.listen(parsed->host, parsed->port);
  if (!bound) return std::unexpected(bound.error().detail);
  return *bound;
}

Service::~Service() {
  // Requests first, then what they use: their ends still reach the deciding thread.
  client_server_.reset();
  admin_server_.reset();
  for (const auto& fleet : fleets_) fleet->stop();
  background_.stop();
  send_last_spans();
  threads_.stop();
  if (own_decider_) own_decider_->stop();
}

void Service::send_last_spans() {
  constexpr std::chrono::seconds kLongest{1};
  if (!spans_.on()) return;
  auto sent = std::make_shared<std::promise<void>>();
  std::future<void> all_sent = sent->get_future();
  threads_.at(0).call(
      [&] { background_.on(0).spawn(flush_and_tell(spans_, clock_.now() + kLongest, std::move(sent))); });
  all_sent.wait_for(2 * kLongest);  // the service's clock may stand still
  background_.stop();
}

std::string Service::ready_json() const {
  const auto with_port = [](const std::string& address, std::uint16_t port) {
    return address.substr(0, address.rfind(':') + 1) + std::to_string(port);
  };
  const nlohmann::ordered_json ready{{"listen", with_port(params_->listen, client_port_)},
                                     {"admin", with_port(params_->admin.listen, admin_port_)}};
  return ready.dump();
}

std::expected<std::vector<std::string>, std::string> Service::reload(ServeParams next, Origins origins) {
  const ServeParams& now = *params_;
  auto changed = differences(values_of(now, Secrets::shown), values_of(next, Secrets::shown));
  std::string fixed;
  for (const std::string& path : changed) {
    if (!may_change_while_running(path)) fixed += (fixed.empty() ? "" : ", ") + path;
  }
  if (now.tls.used() != next.tls.used()) fixed += (fixed.empty() ? "" : ", ") + std::string{"tls, if used at all"};
  if (now.admin.tls.used() != next.admin.tls.used()) {
    fixed += (fixed.empty() ? "" : ", ") + std::string{"admin.tls, if used at all"};
  }
  if (!fixed.empty()) {
    return std::unexpected("nothing was changed, because this takes effect only at a start: " + fixed +
                           "; restart the router, or undo it and reload again");
  }
  auto loaded = load_keys(next);
  if (!loaded) return std::unexpected("nothing was changed: " + loaded.error());
  for (std::string& name : changed_keys(params_.current().keys, loaded->clients)) changed.push_back(std::move(name));
  std::expected<void, std::string> done;
  for (std::size_t f = 0; f < fleets_.size() && done; ++f) {
    decider_.call([&] { done = fleets_[f]->check_change(next.fleets[f]); });
  }
  if (!done) return std::unexpected("nothing was changed: " + done.error());
  for (std::size_t f = 0; f < fleets_.size(); ++f) {
    decider_.call([&] {
      fleets_[f]->change(next.fleets[f], next);
      fleets_[f]->set_tenants(loaded->clients.tenants());
    });
    if (fleets_[f]->engine_key().replace(std::move(loaded->engines[f]))) {
      changed.push_back("engine key of fleet " + fleets_[f]->name());
    }
  }
  log_->set_level(spdlog::level::from_str(next.log_level));
  auto ends = loaded->certificate_ends(next);
  params_.replace({std::move(next), std::move(origins), loaded->clients, std::move(ends)});
  for (std::string& name : use_certificates(*loaded)) changed.push_back(std::move(name));
  warn_of_certificates();
  return changed;
}

void Service::follow_clock() {
  const auto follow = [this](net::IoThread& thread) { thread.call([&] { thread.timers().fire_due(clock_.now()); }); };
  for (std::size_t i = 0; i < threads_.size(); ++i) follow(threads_.at(i));
  if (own_decider_) follow(*own_decider_);
}

bool Service::drain(net::Duration longest) {
  draining_ = true;
  client_server_->drain();
  return client_server_->wait_until_idle(longest);
}

}  // namespace balanceroute::proxy
