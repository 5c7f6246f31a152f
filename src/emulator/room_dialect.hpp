// room_dialect.hpp - SGLang: prefill and decode get the same body at once and meet in a room that the router drew.
#pragma once

#include <unordered_set>

#include "emulator/dialect.hpp"

namespace balanceroute::emulator {

// RoomDialect matches the two requests by bootstrap_room, one room for each prompt.
//   Rooms  are used once by each side. The prefill rank is the room modulo the ranks.
//   KV     is held until the decode request has come, at most a lease; each side waits that long for the other.
class RoomDialect final : public Dialect {
 public:
  RoomDialect(KvExchange& exchange, KvLoss loss) : exchange_{exchange}, loss_{loss} {}

  std::expected<void, ApiError> check_prefill(const Leg& leg) override;
  std::optional<std::int64_t> prefill_rank(const GenerationRequest& request, std::int64_t ranks) const override;
  // Limits are the client's, so that the reason says nothing.
  bool keeps_kv(std::string_view /*finish_reason*/) const override { return true; }
  boost::asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& leg,
                                                                         ComputedPrompts prompts) override;
  boost::asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& leg) override;

 private:
  // Rooms one side has used.
  using Rooms = std::unordered_set<std::int64_t>;
  [[nodiscard]] std::expected<void, ApiError> enter_rooms(const Leg& leg, Rooms& used);

  KvExchange& exchange_;
  KvLoss loss_;
  Rooms prefill_rooms_;
  Rooms decode_rooms_;
};

}  // namespace balanceroute::emulator
