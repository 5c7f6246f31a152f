// layerwise_dialect.hpp - vllm-ascend's MooncakeLayerwiseConnector: the decode engine calls the router, which then asks
// a prefill engine to push the KV to it.
//
// Source: engine-protocols 1.4.
#pragma once

#include "proxy/dialects/dialect.hpp"

namespace balanceroute::proxy {

class LayerwiseDialect final : public Dialect {
 public:
  LegOrder order() const override { return LegOrder::OnCallback; }
  // A decode engine calls once for each prompt, and the KV of a prompt goes to one answer.
  bool hands_over(const GenerationBody& body) const override { return body.sequences == body.prompts; }
  bool gives_answers_up() const override { return true; }
  void edit_prefill(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
  void edit_decode(BodyEdit& edit, const GenerationBody& body, const Handover& handover) const override;
};

// The request that a decode engine's id of it names: "cmpl-<id>-<prompt>" or "chatcmpl-<id>".
[[nodiscard]] std::string_view request_of_child(std::string_view child_id);

}  // namespace balanceroute::proxy
