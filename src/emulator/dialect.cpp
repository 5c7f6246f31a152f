#include "emulator/dialect.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "emulator/layerwise_dialect.hpp"
#include "emulator/relay_dialect.hpp"
#include "emulator/room_dialect.hpp"
#include "emulator/transfer_id_dialect.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

// Ranks that prefill by themselves.
class AggregatedDialect final : public Dialect {
 public:
  std::expected<void, ApiError> check_prefill(const Leg& /*leg*/) override { return {}; }
  asio::awaitable<std::expected<std::string, ApiError>> prefilled(const Leg& /*leg*/,
                                                                  ComputedPrompts /*prompts*/) override {
    co_return std::string{};
  }
  asio::awaitable<std::expected<Received, ApiError>> receive(const Leg& /*leg*/) override { co_return Received{}; }
};

}  // namespace

std::optional<std::int64_t> Dialect::prefill_rank(const GenerationRequest& /*request*/, std::int64_t /*ranks*/) const {
  return std::nullopt;
}

std::unique_ptr<Dialect> make_dialect(const EmulatorParams& params, net::IoThread& thread, net::TaskGroup& tasks,
                                      KvExchange& exchange) {
  const KvLoss loss{params.recomputes_lost_kv(), exchange};
  switch (params.dialect_kind()) {
    case DialectKind::aggregated:
      return std::make_unique<AggregatedDialect>();
    case DialectKind::vllm_nixl:
      return std::make_unique<RelayDialect>(RelayDialect::Kind::nixl, exchange, loss);
    case DialectKind::ascend_mooncake:
      return std::make_unique<RelayDialect>(RelayDialect::Kind::ascend, exchange, loss);
    case DialectKind::vllm_mooncake:
      return std::make_unique<TransferIdDialect>(exchange, loss);
    case DialectKind::ascend_layerwise:
      return std::make_unique<LayerwiseDialect>(thread, tasks, exchange, params.block_size);
    case DialectKind::sglang:
      return std::make_unique<RoomDialect>(exchange, loss);
  }
  std::unreachable();
}

ApiError relay_fault(KvExchange& exchange, std::string message, std::string param) {
  ++exchange.counters().relay_faults;
  return {.message = std::move(message), .param = std::move(param)};
}

std::optional<std::string> string_member(const std::string& object, std::string_view name) {
  const auto json = nlohmann::json::parse(object, nullptr, false);
  if (!json.is_object()) return std::nullopt;
  const auto member = json.find(name);
  if (member == json.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

bool flag_member(const std::string& object, std::string_view name) {
  const auto json = nlohmann::json::parse(object, nullptr, false);
  return json.is_object() && json.contains(name) && json[name] == true;
}

std::expected<void, ApiError> check_vllm_prefill(const Leg& leg, KvExchange& exchange) {
  const auto& request = leg.request;
  const auto refuse = [&](std::string message, std::string param) {
    return std::unexpected{relay_fault(exchange, "prefill request: " + std::move(message), std::move(param))};
  };
  const auto& params = request.transfer.kv_transfer_params;
  if (!params) return refuse("kv_transfer_params is missing", "kv_transfer_params");
  if (!flag_member(*params, "do_remote_decode")) {
    return refuse("kv_transfer_params.do_remote_decode: expected true", "kv_transfer_params");
  }
  if (request.stream || request.stream_options) return refuse("stream: expected false, no stream_options", "stream");
  if (request.limit != Tokens{1}) {
    const auto limit = request.limit ? std::to_string(request.limit->count()) : std::string{"absent"};
    return refuse("max_tokens and max_completion_tokens: " + limit + ", expected 1", "max_tokens");
  }
  if (request.min_tokens.value_or(0) > 1) {
    return refuse("min_tokens = " + std::to_string(*request.min_tokens) + ": expected at most max_tokens",
                  "min_tokens");
  }
  if (request.answers_per_prompt != 1) {
    return refuse("n = " + std::to_string(request.answers_per_prompt) + ": expected 1", "n");
  }
  return {};
}

std::expected<Received, ApiError> KvLoss::faulty_relay(std::string message) const {
  ++exchange_.counters().relay_faults;
  return decide(std::move(message));
}

std::expected<Received, ApiError> KvLoss::broken_transfer() const {
  ++exchange_.counters().transfers_lost;
  return decide("the transfer of the prompt's KV broke");
}

std::expected<Received, ApiError> KvLoss::decide(std::string message) const {
  if (recompute_) {
    ++exchange_.counters().recomputed_prompts;
    return Received{};
  }
  return std::unexpected{ApiError{
      .status = 500, .type = "InternalServerError", .message = "KV load failure: " + std::move(message), .param = ""}};
}

}  // namespace balanceroute::emulator
