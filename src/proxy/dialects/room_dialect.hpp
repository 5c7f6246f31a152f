// room_dialect.hpp - SGLang: both engines get the same body and meet in a room of the prefill engine's bootstrap
// server.
//
// Source: engine-protocols 2.4.
#pragma once

#include <random>

#include "proxy/dialects/dialect.hpp"

namespace balanceroute::proxy {

class RoomDialect final : public Dialect {
 public:
  LegOrder order() const override { return LegOrder::Together; }
  bool hands_over(const GenerationBody& /*body*/) const override { return true; }
  // A room is for one answer, and only requests for choices can name it.
  std::optional<BodyError> refusal(const GenerationBody& body, GenerationKind kind) const override;
  // An engine in prefill-decode mode fails a request without a room.
  bool decodes_alone() const override { return false; }
  bool tells_cached_of_prefill() const override { return true; }
  void edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
  void edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
};

// A fresh room for each prompt, all of the peer's rank: the engine takes the room modulo its ranks.
[[nodiscard]] std::vector<std::int64_t> fresh_rooms(const PrefillPeer& peer, std::int32_t prompts,
                                                    std::mt19937_64& random);

}  // namespace balanceroute::proxy
