#include "emulator/emulator.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "emulator/fleet.hpp"
#include "emulator/rank_service.hpp"
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
      : threads{1, "emulator", clock}, fleet{threads.at(0), params} {}

  net::IoThreads threads;
  Fleet fleet;
  std::vector<std::unique_ptr<RankService>> services;
  std::vector<std::unique_ptr<net::HttpServer>> servers;
};

Emulator::Emulator(const EmulatorParams& params, const net::Clock& clock)
    : params_{params}, parts_{std::make_unique<Parts>(params, clock)} {}

Emulator::~Emulator() {
  stop();
}

std::expected<void, std::string> Emulator::start() {
  const auto last_port = params_.base_port + params_.groups * params_.ranks - 1;
  if (params_.base_port > 0 && last_port > 65'535) {
    return std::unexpected{"base_port = " + std::to_string(params_.base_port) + ": expected room for " +
                           std::to_string(params_.groups * params_.ranks) + " ports up to 65535"};
  }
  for (std::int64_t group = 0; group < params_.groups; ++group) {
    auto& ports = ports_.emplace_back();
    for (std::int64_t rank = 0; rank < params_.ranks; ++rank) {
      auto& service = *parts_->services.emplace_back(std::make_unique<RankService>(
          parts_->fleet, static_cast<std::size_t>(group), static_cast<std::size_t>(rank), params_));
      auto& server = *parts_->servers.emplace_back(std::make_unique<net::HttpServer>(
          parts_->threads, server_options(),
          [&service](net::HttpExchange& exchange) { return service.handle(exchange); }));
      const auto wanted = params_.base_port == 0 ? 0 : params_.base_port + group * params_.ranks + rank;
      const auto bound = server.listen(params_.host, static_cast<std::uint16_t>(wanted));
      if (!bound) return std::unexpected{bound.error().detail};
      ports.push_back(*bound);
    }
  }
  parts_->threads.start();
  return {};
}

void Emulator::stop() {
  for (const auto& server : parts_->servers) server->stop();
  parts_->threads.stop();
}

std::string Emulator::stats_json() {
  std::string stats;
  parts_->threads.at(0).call([&] { stats = parts_->fleet.stats_json(); });
  return stats;
}

void Emulator::reset_measures() {
  parts_->threads.at(0).call([this] { parts_->fleet.reset_measures(); });
}

std::string Emulator::ready_json() const {
  auto groups = nlohmann::ordered_json::array();
  for (const auto& ports : ports_) {
    auto urls = nlohmann::ordered_json::array();
    for (const auto port : ports) urls.push_back("http://" + net::Endpoint{params_.host, port}.authority());
    groups.push_back(std::move(urls));
  }
  return nlohmann::ordered_json{{"model", params_.model}, {"groups", std::move(groups)}}.dump();
}

}  // namespace balanceroute::emulator
