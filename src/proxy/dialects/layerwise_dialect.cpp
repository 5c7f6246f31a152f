#include "proxy/dialects/layerwise_dialect.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

void LayerwiseDialect::edit_prefill(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& handover) const {
  ask_for_one_token(edit, FirstToken::IsNotLast);
  edit.add("kv_transfer_params", handover.object);
  if (!handover.batch.empty()) edit.add("batch_kv_transfer_params", handover.batch);
}

void LayerwiseDialect::edit_decode(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& handover) const {
  if (handover.callback.empty()) return;
  const nlohmann::ordered_json params{
      {"do_remote_decode", false}, {"do_remote_prefill", true}, {"metaserver", handover.callback}};
  edit.add("kv_transfer_params", params.dump());
}

std::string_view request_of_child(std::string_view child_id) {
  for (const std::string_view prefix : {"chatcmpl-", "cmpl-"}) {
    if (child_id.starts_with(prefix)) {
      child_id.remove_prefix(prefix.size());
      break;
    }
  }
  return child_id.substr(0, child_id.find('-'));
}

}  // namespace balanceroute::proxy
