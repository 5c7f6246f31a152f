// transfer_id_dialect.hpp - vLLM's MooncakeConnector: prefill and decode run at once and meet by an id that the router
// makes up.
#pragma once

#include "emulator/dialect.hpp"

namespace balanceroute::emulator {

// TransferIdDialect matches the two requests by transfer_id.
//   KV  is held from when it is computed until the decode request has come, at most a lease; the decode request waits
//       as long for it.
class TransferIdDialect final : public Dialect {
 public:
  TransferIdDialect(KvExchange& exchange, KvLoss loss) : exchange_{exchange}, loss_{loss} {}

  std::expected<void, ApiError> check_prefill(const Leg& leg) override;
  boost::asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& leg,
                                                                         ComputedPrompts prompts) override;
  boost::asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& leg) override;

 private:
  KvExchange& exchange_;
  KvLoss loss_;
};

}  // namespace balanceroute::emulator
