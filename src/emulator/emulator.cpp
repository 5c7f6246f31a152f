#include "emulator/emulator.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "emulator/bootstrap_service.hpp"
#include "emulator/decode_service.hpp"
#include "emulator/fleet.hpp"
#include "emulator/prefill_service.hpp"
#include "net/client.hpp"
#include "net/io_thread.hpp"
#include "net/server.hpp"

namespace balanceroute::emulator {
namespace {

net::ServerOptions server_options() {
  net::ServerOptions options;
  options.error_response = [](int status, std::string_view detail) {
    const ApiError error{.status = status, .message = std::string{detail}};
    return net::json_response(status, to_json(error));
  };
  return options;
}

}  // namespace

struct Emulator::Parts {
  Parts(const EmulatorParams& params, const net::Clock& clock)
      : threads{1, "emulator", clock}, fleet{threads.at(0), params}, host{params.host}, next_port{params.base_port} {}

  // A server for `service`, on the next port.
  template <class Service>
  std::expected<std::uint16_t, std::string> serve(Service& service) {
    auto& server = *servers.emplace_back(std::make_unique<net::HttpServer>(
        threads, server_options(), [&service](net::HttpExchange& exchange) { return service.handle(exchange); }));
    const auto bound = server.listen(host, static_cast<std::uint16_t>(next_port == 0 ? 0 : next_port++));
    if (!bound) return std::unexpected{bound.error().detail};
    return *bound;
  }

  net::IoThreads threads;
  Fleet fleet;
  std::string host;
  std::int64_t next_port;
  std::vector<std::unique_ptr<EngineService>> services;
  std::vector<std::unique_ptr<BootstrapService>> bootstraps;
  std::vector<std::unique_ptr<net::HttpServer>> servers;
};

Emulator::Emulator(const EmulatorParams& params, const net::Clock& clock)
    : params_{params}, parts_{std::make_unique<Parts>(params, clock)} {}

Emulator::~Emulator() {
  stop();
}

bool Emulator::has_bootstrap() const {
  return params_.dialect_kind() == DialectKind::vllm_mooncake || params_.dialect_kind() == DialectKind::sglang;
}

std::int64_t Emulator::port_count() const {
  return params_.groups * params_.ports_per_group() + params_.prefill_instances * (has_bootstrap() ? 2 : 1);
}

std::expected<void, std::string> Emulator::start() {
  if (auto problem = params_.contradiction()) return std::unexpected{*std::move(problem)};
  if (params_.base_port > 0 && params_.base_port + port_count() - 1 > 65'535) {
    return std::unexpected{"base_port = " + std::to_string(params_.base_port) + ": expected room for " +
                           std::to_string(port_count()) + " ports up to 65535"};
  }
  if (auto started = start_decode(); !started) return started;
  if (auto started = start_prefill(); !started) return started;
  parts_->threads.start();
  return {};
}

std::expected<void, std::string> Emulator::start_decode() {
  const Role role = params_.dialect_kind() == DialectKind::aggregated ? Role::aggregated : Role::decode;
  for (std::int64_t group = 0; group < params_.groups; ++group) {
    auto& ports = ports_.emplace_back();
    for (std::int64_t first = 0; first < params_.ranks; first += params_.ranks_per_port) {
      auto& service = *parts_->services.emplace_back(std::make_unique<DecodeService>(
          parts_->fleet, ranks_of(role, static_cast<std::size_t>(group), first, params_.ranks_per_port)));
      const auto port = parts_->serve(service);
      if (!port) return std::unexpected{port.error()};
      service.attach(*parts_->servers.back(), *port, 0);
      ports.push_back(*port);
    }
  }
  return {};
}

std::expected<void, std::string> Emulator::start_prefill() {
  const auto first = parts_->services.size();
  for (std::int64_t instance = 0; instance < params_.prefill_instances; ++instance) {
    auto& service = *parts_->services.emplace_back(std::make_unique<PrefillService>(
        parts_->fleet, ranks_of(Role::prefill, static_cast<std::size_t>(instance), 0, params_.prefill_ranks)));
    const auto port = parts_->serve(service);
    if (!port) return std::unexpected{port.error()};
    service.attach(*parts_->servers.back(), *port, 0);
    prefill_ports_.push_back(*port);
  }
  if (!has_bootstrap()) return {};
  for (std::size_t instance = 0; instance < prefill_ports_.size(); ++instance) {
    auto& engine = *parts_->services[first + instance];
    auto& bootstrap = *parts_->bootstraps.emplace_back(std::make_unique<BootstrapService>(engine));
    auto& server = *parts_->servers[first + instance];
    const auto port = parts_->serve(bootstrap);
    if (!port) return std::unexpected{port.error()};
    engine.attach(server, prefill_ports_[instance], *port);
    bootstrap_ports_.push_back(*port);
  }
  return {};
}

std::vector<EngineIdentity> Emulator::ranks_of(Role role, std::size_t engine, std::int64_t first,
                                               std::int64_t count) const {
  std::vector<EngineIdentity> ranks;
  for (std::int64_t rank = first; rank < first + count; ++rank) {
    ranks.push_back({.role = role,
                     .engine = engine,
                     .rank = static_cast<std::size_t>(rank),
                     .engine_id = {},
                     .host = params_.host});
  }
  return ranks;
}

void Emulator::stop() {
  for (const auto& server : parts_->servers) server->stop();
  auto& thread = parts_->threads.at(0);
  auto& tasks = parts_->fleet.tasks();
  thread.call([&] { tasks.cancel_all(); });
  bool ended = false;
  while (!ended) thread.call([&] { ended = tasks.size() == 0; });
  parts_->threads.stop();
}

std::string Emulator::stats_json() {
  std::string stats;
  parts_->threads.at(0).call([&] { stats = parts_->fleet.stats_json(); });
  return stats;
}

std::string Emulator::state_json() {
  std::string state;
  parts_->threads.at(0).call([&] { state = parts_->fleet.state_json(); });
  return state;
}

void Emulator::reset_measures() {
  parts_->threads.at(0).call([this] { parts_->fleet.reset_measures(); });
}

std::string Emulator::ready_json() const {
  using Json = nlohmann::ordered_json;
  const auto urls = [this](const std::vector<std::uint16_t>& ports) {
    auto list = Json::array();
    for (const auto port : ports) list.push_back("http://" + net::Endpoint{params_.host, port}.authority());
    return list;
  };
  auto groups = Json::array();
  for (const auto& ports : ports_) groups.push_back(urls(ports));
  return Json{{"model", params_.model},
              {"dialect", params_.dialect},
              {"groups", std::move(groups)},
              {"prefill", urls(prefill_ports_)},
              {"bootstrap", urls(bootstrap_ports_)}}
      .dump();
}

}  // namespace balanceroute::emulator
