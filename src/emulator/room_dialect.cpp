#include "emulator/room_dialect.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "net/client.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

std::string key_of(std::int64_t room) {
  return "room " + std::to_string(room);
}

// What both sides must agree on: the whole request, but for ranks, which each side has its own of.
std::string proof_of(std::string_view body) {
  auto json = nlohmann::ordered_json::parse(body, nullptr, false);
  for (const char* rank : {"routed_dp_rank", "data_parallel_rank", "disagg_prefill_dp_rank"}) json.erase(rank);
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

}  // namespace

std::expected<void, ApiError> RoomDialect::enter_rooms(const Leg& leg, Rooms& used) {
  const auto& members = leg.request.transfer;
  const auto prompts = leg.request.prompts.size();
  if (leg.request.answers_per_prompt != 1) {
    return std::unexpected{relay_fault(exchange_,
                                       "n = " + std::to_string(leg.request.answers_per_prompt) +
                                           ": expected 1, all answers to a prompt would meet in its room",
                                       "n")};
  }
  if (members.bootstrap_rooms.size() != prompts || members.bootstrap_hosts.size() != prompts ||
      members.bootstrap_ports.size() != prompts) {
    return std::unexpected{
        relay_fault(exchange_, "bootstrap_host, bootstrap_port, bootstrap_room: expected one of each for each prompt",
                    "bootstrap_room")};
  }
  for (const auto room : members.bootstrap_rooms) {
    if (used.insert(room).second) continue;
    return std::unexpected{
        relay_fault(exchange_, "bootstrap_room = " + std::to_string(room) + ": used before, expected a fresh one",
                    "bootstrap_room")};
  }
  return {};
}

std::expected<void, ApiError> RoomDialect::check_prefill(const Leg& leg) {
  if (auto entered = enter_rooms(leg, prefill_rooms_); !entered) return entered;
  const auto& members = leg.request.transfer;
  for (std::size_t i = 0; i < leg.request.prompts.size(); ++i) {
    // A router that has no port for the engine says null, and the engine takes its own.
    if (members.bootstrap_hosts[i] == leg.engine.host &&
        members.bootstrap_ports[i].value_or(leg.engine.bootstrap_port) == leg.engine.bootstrap_port) {
      continue;
    }
    return std::unexpected{relay_fault(exchange_,
                                       "bootstrap_host, bootstrap_port: expected " +
                                           net::Endpoint{leg.engine.host, leg.engine.bootstrap_port}.authority(),
                                       "bootstrap_host")};
  }
  return {};
}

std::optional<std::int64_t> RoomDialect::prefill_rank(const GenerationRequest& request, std::int64_t ranks) const {
  if (request.transfer.bootstrap_rooms.empty()) return std::nullopt;
  return request.transfer.bootstrap_rooms.front() % ranks;
}

asio::awaitable<std::expected<std::string, ApiError>> RoomDialect::prefilled(const Leg& leg, ComputedPrompts prompts) {
  const auto& members = leg.request.transfer;
  const auto proof = proof_of(leg.body);
  for (std::size_t i = 0; i < prompts.size(); ++i) {
    if (leg.lose_kv) prompts[i].reset();
    KvOffer offer{.key = key_of(members.bootstrap_rooms[i]),
                  .proof = proof,
                  .engine_id = leg.engine.engine_id,
                  .rank = leg.engine.rank,
                  .kv = std::move(prompts[i])};
    const bool taken = co_await exchange_.hand_over(std::move(offer));
    if (taken) continue;
    co_return std::unexpected{
        ApiError{.status = 500,
                 .type = "InternalServerError",
                 .message = "no decode engine came for bootstrap_room " + std::to_string(members.bootstrap_rooms[i])}};
  }
  co_return std::string{};
}

asio::awaitable<std::expected<Received, ApiError>> RoomDialect::receive(const Leg& leg) {
  if (const auto entered = enter_rooms(leg, decode_rooms_); !entered) co_return std::unexpected{entered.error()};
  const auto& members = leg.request.transfer;
  const auto proof = proof_of(leg.body);
  Received received{.kv = {}, .transferred = true};
  for (std::size_t i = 0; i < leg.request.prompts.size(); ++i) {
    const auto room = members.bootstrap_rooms[i];
    auto offer = co_await exchange_.wait_for(key_of(room));
    if (!offer && offer.error() == net::WaitResult::Cancelled) co_return Received{};  // the client left
    if (!offer) {
      co_return loss_.faulty_relay("no prefill engine came to bootstrap_room " + std::to_string(room) + " in time");
    }
    if (offer->proof != proof) {
      co_return loss_.faulty_relay("bootstrap_room " + std::to_string(room) +
                                   ": the prefill request was another one, expected equal bodies");
    }
    if (members.disagg_prefill_dp_rank.value_or(static_cast<std::int64_t>(offer->rank)) !=
        static_cast<std::int64_t>(offer->rank)) {
      co_return loss_.faulty_relay("disagg_prefill_dp_rank = " + std::to_string(*members.disagg_prefill_dp_rank) +
                                   ": expected " + std::to_string(offer->rank));
    }
    if (leg.lose_kv || !offer->kv) co_return loss_.broken_transfer();
    received.kv.push_back(std::move(offer->kv));
  }
  co_return received;
}

}  // namespace balanceroute::emulator
