#include "emulator/transfer_id_dialect.hpp"

#include <utility>

#include "net/client.hpp"

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;

// What a decode request must say of the prefill rank.
std::string proof_of(const std::string& bootstrap_addr, const std::string& engine_id) {
  return "remote_bootstrap_addr " + bootstrap_addr + ", remote_engine_id " + engine_id;
}

std::string bootstrap_addr(const EngineIdentity& engine) {
  return "http://" + net::Endpoint{engine.host, engine.bootstrap_port}.authority();
}

}  // namespace

std::expected<void, ApiError> TransferIdDialect::check_prefill(const Leg& leg) {
  if (auto right = check_vllm_prefill(leg, exchange_); !right) return right;
  if (leg.request.prompts.size() > 1) {
    return std::unexpected{relay_fault(exchange_, "prefill request: several prompts under one transfer_id", "prompt")};
  }
  if (!string_member(*leg.request.transfer.kv_transfer_params, "transfer_id")) {
    return std::unexpected{
        relay_fault(exchange_, "prefill request: kv_transfer_params.transfer_id is missing", "kv_transfer_params")};
  }
  return {};
}

asio::awaitable<std::expected<std::string, ApiError>> TransferIdDialect::prefilled(const Leg& leg,
                                                                                   ComputedPrompts prompts) {
  if (leg.lose_kv) prompts.front().reset();
  exchange_.offer({.key = *string_member(*leg.request.transfer.kv_transfer_params, "transfer_id"),
                   .proof = proof_of(bootstrap_addr(leg.engine), leg.engine.engine_id),
                   .engine_id = leg.engine.engine_id,
                   .rank = leg.engine.rank,
                   .kv = std::move(prompts.front())});
  co_return std::string{};
}

asio::awaitable<std::expected<Received, ApiError>> TransferIdDialect::receive(const Leg& leg) {
  const auto& params = leg.request.transfer.kv_transfer_params;
  if (!params) {
    ++exchange_.counters().local_prompts;
    co_return Received{};
  }
  const auto id = string_member(*params, "transfer_id");
  const auto address = string_member(*params, "remote_bootstrap_addr");
  const auto engine_id = string_member(*params, "remote_engine_id");
  if (!flag_member(*params, "do_remote_prefill") || !id || !address || !engine_id) {
    co_return loss_.faulty_relay(
        "decode request: kv_transfer_params: expected do_remote_prefill true, transfer_id, remote_bootstrap_addr and "
        "remote_engine_id");
  }
  auto offer = co_await exchange_.wait_for(*id);
  if (!offer && offer.error() == net::WaitResult::Cancelled) co_return Received{};  // the client left
  if (!offer) co_return loss_.faulty_relay("no prefill engine computed transfer_id " + *id + " in time");
  const std::string told = proof_of(*address, *engine_id);
  if (offer->proof != told) {
    co_return loss_.faulty_relay("decode request: " + told + ": expected " + offer->proof);
  }
  if (leg.lose_kv || !offer->kv) co_return loss_.broken_transfer();
  Received received{.kv = {}, .transferred = true};
  received.kv.push_back(std::move(offer->kv));
  co_return received;
}

}  // namespace balanceroute::emulator
