// layerwise_dialect.hpp - vllm-ascend's MooncakeLayerwiseConnector: the decode engine asks the router, at its
// metaserver, for a prefill engine.
#pragma once

#include <map>

#include "emulator/dialect.hpp"
#include "net/client.hpp"
#include "net/task_group.hpp"

namespace balanceroute::emulator {

// LayerwiseDialect posts to the metaserver what the prefill engine has to know, and waits until a prefill engine that
// was told the same has pushed the KV.
//   KV  goes to the decode engine as it is computed, before the answer's first token is known; the prefill engine holds
//       nothing afterwards.
class LayerwiseDialect final : public Dialect {
 public:
  LayerwiseDialect(net::IoThread& thread, net::TaskGroup& tasks, KvExchange& exchange, std::int64_t block_size)
      : thread_{thread}, tasks_{tasks}, exchange_{exchange}, block_size_{block_size} {}

  std::expected<void, ApiError> check_prefill(const Leg& leg) override;
  bool keeps_kv(std::string_view /*finish_reason*/) const override { return true; }
  boost::asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& leg,
                                                                         ComputedPrompts prompts) override;
  boost::asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& leg) override;

 private:
  struct Target {
    net::Endpoint endpoint;
    std::string path;
  };

  [[nodiscard]] static std::expected<Target, std::string> parse_target(std::string_view url);
  [[nodiscard]] std::string callback_object(const Leg& leg, const std::string& child_id, Tokens prompt);
  // Fails the expectation when the router cannot be told, or refuses.
  boost::asio::awaitable<void> call_router(Target target, std::string child_id, std::string object);

  net::IoThread& thread_;
  net::TaskGroup& tasks_;
  KvExchange& exchange_;
  std::int64_t block_size_;
  std::uint64_t next_ = 0;
  std::map<std::string, net::HttpClient> clients_;  // by authority
};

}  // namespace balanceroute::emulator
