// transfer_id_dialect.hpp - vLLM's MooncakeConnector: both engines get the same transfer id, and the decode engine the
// address and the engine id of the prefill rank.
//
// Source: engine-protocols 1.3.
#pragma once

#include "proxy/dialects/dialect.hpp"

namespace balanceroute::proxy {

class TransferIdDialect final : public Dialect {
 public:
  LegOrder order() const override { return LegOrder::Together; }
  bool hands_over(const GenerationBody& body) const override { return body.sequences == 1; }
  bool needs_engine_id() const override { return true; }
  // The KV is dropped of an answer that is over, whatever the decode engine waits for.
  bool keeps_kv(std::string_view finish_reason) const override {
    return finish_reason.empty() || finish_reason == "length";
  }
  void edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
  void edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
};

}  // namespace balanceroute::proxy
