#include "proxy/dialects/dialect.hpp"

#include <utility>

#include "proxy/dialects/layerwise_dialect.hpp"
#include "proxy/dialects/relay_dialect.hpp"
#include "proxy/dialects/room_dialect.hpp"
#include "proxy/dialects/transfer_id_dialect.hpp"

namespace balanceroute::proxy {

namespace {

// Workers that prefill by themselves.
class AggregatedDialect final : public Dialect {
 public:
  LegOrder order() const override { return LegOrder::DecodeOnly; }
  bool hands_over(const GenerationBody& /*body*/) const override { return false; }
  void edit_prefill(BodyEdit& /*edit*/, const GenerationBody& /*body*/, const Handover& /*handover*/) const override {}
  void edit_decode(BodyEdit& /*edit*/, const GenerationBody& /*body*/, const Handover& /*handover*/) const override {}
};

}  // namespace

std::unique_ptr<Dialect> make_dialect(DialectKind kind) {
  switch (kind) {
    case DialectKind::Aggregated:
      return std::make_unique<AggregatedDialect>();
    case DialectKind::VllmNixl:
      return std::make_unique<RelayDialect>(RelayDialect::Engine::Vllm);
    case DialectKind::AscendMooncake:
      return std::make_unique<RelayDialect>(RelayDialect::Engine::VllmAscend);
    case DialectKind::VllmMooncake:
      return std::make_unique<TransferIdDialect>();
    case DialectKind::AscendLayerwise:
      return std::make_unique<LayerwiseDialect>();
    case DialectKind::Sglang:
      return std::make_unique<RoomDialect>();
  }
  std::unreachable();
}

void ask_for_one_token(BodyEdit& edit, FirstToken first) {
  edit.set_if_present(Member::Stream, "false");
  edit.drop(Member::StreamOptions);
  edit.set(Member::MaxTokens, "1");
  edit.set_if_present(Member::MaxCompletionTokens, "1");
  if (first == FirstToken::IsNotLast) {
    edit.set(Member::MinTokens, "1");
  } else {
    edit.drop(Member::MinTokens);
  }
  edit.drop(Member::MinCompletionTokens);
  edit.set_if_present(Member::N, "1");
  edit.set_if_present(Member::BestOf, "1");
}

}  // namespace balanceroute::proxy
