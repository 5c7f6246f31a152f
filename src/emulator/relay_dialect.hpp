// relay_dialect.hpp - vLLM's NixlConnector and vllm-ascend's MooncakeConnectorV1: the router carries an object from the
// prefill answer to the decode request.
#pragma once

#include "emulator/dialect.hpp"

namespace balanceroute::emulator {

// RelayDialect makes the object on the prefill side and wants it back, unchanged and in time, on the decode side.
//   KV  is held from the prefill answer until the decode request has come, at most a lease.
class RelayDialect final : public Dialect {
 public:
  enum class Kind { nixl, ascend };

  RelayDialect(Kind kind, KvExchange& exchange, KvLoss loss) : kind_{kind}, exchange_{exchange}, loss_{loss} {}

  std::expected<void, ApiError> check_prefill(const Leg& leg) override;
  boost::asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& leg,
                                                                         ComputedPrompts prompts) override;
  boost::asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& leg) override;

 private:
  [[nodiscard]] std::string transfer_object(const Leg& leg, const std::string& remote_id, Tokens prompt) const;
  [[nodiscard]] std::expected<Received, ApiError> pull(const Leg& leg);

  Kind kind_;
  KvExchange& exchange_;
  KvLoss loss_;
  std::uint64_t next_ = 0;
};

}  // namespace balanceroute::emulator
