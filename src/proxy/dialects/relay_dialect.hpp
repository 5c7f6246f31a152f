// relay_dialect.hpp - vLLM's NixlConnector and vllm-ascend's MooncakeConnectorV1: prefill first, and its answer's
// kv_transfer_params go on to the decode engine as they are.
//
// Source: engine-protocols 1.1.
#pragma once

#include "proxy/dialects/dialect.hpp"

namespace balanceroute::proxy {

class RelayDialect final : public Dialect {
 public:
  enum class Engine { Vllm, VllmAscend };
  explicit RelayDialect(Engine engine) : engine_{engine} {}

  LegOrder order() const override { return LegOrder::PrefillFirst; }
  // An answer tells the KV of one prompt, and it is pulled once.
  bool hands_over(const GenerationBody& body) const override { return body.sequences == 1; }
  bool gives_answers_up() const override { return engine_ == Engine::VllmAscend; }
  void edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
  void edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;

 private:
  Engine engine_;
};

}  // namespace balanceroute::proxy
