#include "proxy/dialects/relay_dialect.hpp"

namespace balanceroute::proxy {

void RelayDialect::edit_prefill(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& /*handover*/) const {
  // Either answer says what is to be done; upstream's own proxies differ too.
  ask_for_one_token(edit, engine_ == Engine::Vllm ? FirstToken::MayBeLast : FirstToken::IsNotLast);
  edit.add("kv_transfer_params",
           R"({"do_remote_decode":true,"do_remote_prefill":false,"remote_engine_id":null,"remote_block_ids":null,)"
           R"("remote_host":null,"remote_port":null})");
}

void RelayDialect::edit_decode(BodyEdit& edit, const GenerationBody& /*body*/, const Handover& handover) const {
  if (!handover.object.empty()) edit.add("kv_transfer_params", handover.object);
}

}  // namespace balanceroute::proxy
