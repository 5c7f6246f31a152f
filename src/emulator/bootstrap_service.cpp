#include "emulator/bootstrap_service.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::emulator {

namespace asio = boost::asio;

asio::awaitable<void> BootstrapService::handle(net::HttpExchange& exchange) {
  const auto path = exchange.request().path();
  if (exchange.request().method != "GET" || (path != "/query" && path != "/health")) {
    const ApiError unknown{.status = 404, .type = "NotFoundError", .message = "Not Found", .param = ""};
    co_await exchange.respond(error_response(unknown));
    co_return;
  }
  auto answer = path == "/query" ? net::json_response(200, query_json()) : net::text_response(200, "OK");
  co_await exchange.respond(std::move(answer));
}

// By rank; the addresses are those of engines to one another, nobody listens there.
std::string BootstrapService::query_json() const {
  auto ranks = nlohmann::ordered_json::object();
  for (const auto& rank : engine_.ranks()) {
    const auto address = "tcp://" + rank.host + ":" + std::to_string(20'000 + rank.rank);
    ranks[std::to_string(rank.rank)] = {{"engine_id", rank.engine_id}, {"worker_addr", {{"0", {{"0", address}}}}}};
  }
  return ranks.dump();
}

}  // namespace balanceroute::emulator
