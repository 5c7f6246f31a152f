#include "proxy/prefill_clients.hpp"

#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::proxy {

namespace {

constexpr net::Duration kBelieved = std::chrono::seconds{1};
constexpr std::size_t kQueryBytes = 16 * 1024 * 1024;

// {"0": {"engine_id": "...", ...}, ...} by rank.
std::optional<std::string> engine_id_of(const std::string& answer, std::int32_t rank) {
  const auto ranks = nlohmann::json::parse(answer, nullptr, false);
  if (!ranks.is_object()) return std::nullopt;
  const auto entry = ranks.find(std::to_string(rank));
  if (entry == ranks.end() || !entry->is_object()) return std::nullopt;
  const auto id = entry->find("engine_id");
  if (id == entry->end() || !id->is_string()) return std::nullopt;
  return id->get<std::string>();
}

}  // namespace

PrefillClients::PrefillClients(net::IoThread& thread, const std::vector<PrefillPeer>& peers,
                               const net::ClientOptions& options)
    : thread_{thread} {
  for (const PrefillPeer& peer : peers) {
    const net::Endpoint bootstrap{peer.endpoint.host, peer.bootstrap_port};
    instances_.push_back(
        std::make_unique<Instance>(Instance{.rank = peer.rank,
                                            .engine = std::make_unique<net::HttpClient>(thread, peer.endpoint, options),
                                            .bootstrap = std::make_unique<net::HttpClient>(thread, bootstrap, options),
                                            .engine_id = std::nullopt}));
  }
}

net::asio::awaitable<std::expected<std::string, net::NetError>> PrefillClients::engine_id(PrefillId id,
                                                                                          net::TimePoint deadline) {
  Instance& instance = *instances_[id.value()];
  if (instance.engine_id && thread_.now() - instance.told < kBelieved) co_return *instance.engine_id;
  net::HttpRequest request;
  request.target = "/query";
  auto call = co_await instance.bootstrap->send(request, deadline);
  if (!call) co_return std::unexpected(call.error());
  const auto answer = co_await call->read_all(kQueryBytes, deadline);
  if (!answer) co_return std::unexpected(answer.error());
  auto told = call->head().status == 200 ? engine_id_of(*answer, instance.rank) : std::nullopt;
  if (!told) {
    co_return std::unexpected(net::NetError{
        net::NetFault::Protocol, "the bootstrap server told no engine id of rank " + std::to_string(instance.rank)});
  }
  instance.engine_id = *told;
  instance.told = thread_.now();
  co_return std::move(*told);
}

}  // namespace balanceroute::proxy
