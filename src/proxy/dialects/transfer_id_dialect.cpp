#include "proxy/dialects/transfer_id_dialect.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

namespace {

std::string transfer_id(const Handover& handover) {
  return "xfer-" + handover.request_id;
}

}  // namespace

void TransferIdDialect::edit_prefill(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& handover) const {
  ask_for_one_token(edit, FirstToken::IsNotLast);
  const nlohmann::ordered_json params{
      {"do_remote_decode", true}, {"do_remote_prefill", false}, {"transfer_id", transfer_id(handover)}};
  edit.add("kv_transfer_params", params.dump());
}

void TransferIdDialect::edit_decode(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& handover) const {
  if (!handover.prefill) return;
  const net::Endpoint bootstrap{handover.prefill->endpoint.host, handover.prefill->bootstrap_port};
  const nlohmann::ordered_json params{{"do_remote_decode", false},
                                      {"do_remote_prefill", true},
                                      {"remote_bootstrap_addr", "http://" + bootstrap.authority()},
                                      {"remote_engine_id", handover.engine_id},
                                      {"transfer_id", transfer_id(handover)}};
  edit.add("kv_transfer_params", params.dump());
}

}  // namespace balanceroute::proxy
