#include "proxy/dialects/room_dialect.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

std::optional<BodyError> RoomDialect::refusal(const GenerationBody& body, GenerationKind kind) const {
  if (!answers_in_choices(kind)) {
    return BodyError{
        "a fleet of dialect sglang serves chat and text completions only: no other request can say where "
        "its KV is handed over",
        ""};
  }
  if (body.sequences == body.prompts) return std::nullopt;
  const std::string param{name_of(body.place(Member::N) ? Member::N : Member::BestOf)};
  return BodyError{
      "'n' and 'best_of': expected 1 with a fleet of dialect sglang, whose engines hand the KV of a prompt "
      "to one answer",
      param};
}

void RoomDialect::edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const {
  // Engines compare nothing, but what the one is asked for the other should be too.
  if (handover.usage != UsageWish::None) edit.ask_for_usage(handover.usage == UsageWish::Continuous);
  edit_decode(edit, body, handover);
}

void RoomDialect::edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const {
  const nlohmann::json host = handover.prefill->endpoint.host;
  const nlohmann::json port = handover.prefill->bootstrap_port;
  if (body.prompts == 1) {
    edit.add("bootstrap_host", host.dump());
    edit.add("bootstrap_port", port.dump());
    edit.add("bootstrap_room", std::to_string(handover.rooms.front()));
    return;
  }
  const std::vector<nlohmann::json> hosts(handover.rooms.size(), host);
  const std::vector<nlohmann::json> ports(handover.rooms.size(), port);
  edit.add("bootstrap_host", nlohmann::json(hosts).dump());
  edit.add("bootstrap_port", nlohmann::json(ports).dump());
  edit.add("bootstrap_room", nlohmann::json(handover.rooms).dump());
}

std::vector<std::int64_t> fresh_rooms(const PrefillPeer& peer, std::int32_t prompts, std::mt19937_64& random) {
  std::vector<std::int64_t> rooms;
  for (std::int32_t i = 0; i < prompts; ++i) {
    const std::int64_t ranks = peer.ranks;
    const auto number = static_cast<std::int64_t>(random() >> 2);  // room for the rank below 2^63
    rooms.push_back(number - number % ranks + peer.rank);
  }
  return rooms;
}

}  // namespace balanceroute::proxy
