#include "emulator/relay_dialect.hpp"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kNixlBlock = 16;
constexpr std::int64_t kAscendBlock = 128;
constexpr std::int64_t kMostBlocks = 64;  // told of a long prompt; the list is opaque to everybody but engines

// Block numbers as engines have them: large and without order.
Json block_ids(std::uint64_t seed, std::int64_t count) {
  auto ids = Json::array();
  for (std::int64_t i = 0; i < std::clamp<std::int64_t>(count, 1, kMostBlocks); ++i) {
    ids.push_back((seed * 0x9e3779b97f4a7c15ULL + static_cast<std::uint64_t>(i) * 7919) >> 40);
  }
  return Json::array({std::move(ids)});
}

std::string key_of(const std::string& engine_id, const std::string& request_id) {
  return engine_id + "/" + request_id;
}

}  // namespace

std::expected<void, ApiError> RelayDialect::check_prefill(const Leg& leg) {
  if (auto right = check_vllm_prefill(leg, exchange_); !right) return right;
  if (leg.request.prompts.size() > 1) {
    return std::unexpected{
        relay_fault(exchange_, "prefill request: several prompts, an answer can tell the KV of one only", "prompt")};
  }
  return {};
}

std::string RelayDialect::transfer_object(const Leg& leg, const std::string& remote_id, Tokens prompt) const {
  const std::int64_t block = kind_ == Kind::nixl ? kNixlBlock : kAscendBlock;
  const std::int64_t blocks = (prompt.count() + block - 1) / block;
  Json object{{"do_remote_prefill", true},
              {"do_remote_decode", false},
              {"remote_block_ids", block_ids(next_, blocks)},
              {"remote_engine_id", leg.engine.engine_id},
              {"remote_request_id", remote_id},
              {"remote_host", leg.engine.host},
              {"remote_port", 5600 + static_cast<std::int64_t>(leg.engine.rank)}};
  if (kind_ == Kind::nixl) {
    const auto expiry = std::chrono::system_clock::now() + exchange_.lease();
    object.update({{"tp_size", 1},
                   {"remote_num_tokens", prompt.count()},
                   {"remote_blocks_expiry_time", std::chrono::duration<double>(expiry.time_since_epoch()).count()},
                   {"transfer_mode", "pull"},
                   // Numbers that doubles cannot hold: a relay that reads them as such is found out.
                   {"agent_cookie", 18'446'744'073'709'551'557ULL - next_}});
  } else {
    object.update({{"remote_ptp_size", 1},
                   {"remote_dcp_size", 1},
                   {"remote_pcp_size", 1},
                   {"last_token_id", kFirstTokenId + 1},
                   {"num_prompt_blocks", blocks},
                   {"remote_block_size", block},
                   {"remote_multi_nodes_meta_mapping",
                    {{"0", {{"host", leg.engine.host}, {"engine_id", leg.engine.engine_id}, {"ports", {{5600}}}}}}}});
  }
  return object.dump();
}

asio::awaitable<std::expected<std::string, ApiError>> RelayDialect::prefilled(const Leg& leg, ComputedPrompts prompts) {
  // The engine appends to its id, so that it is not the other engine's.
  const std::string remote_id = leg.request_id + "-" + std::to_string(next_++);
  std::string object = transfer_object(leg, remote_id, prompts.front()->tokens());
  if (leg.lose_kv) prompts.front().reset();
  exchange_.offer({.key = key_of(leg.engine.engine_id, remote_id),
                   .proof = object,
                   .engine_id = leg.engine.engine_id,
                   .rank = leg.engine.rank,
                   .kv = std::move(prompts.front())});
  co_return object;
}

asio::awaitable<std::expected<Received, ApiError>> RelayDialect::receive(const Leg& leg) {
  if (!leg.request.transfer.kv_transfer_params) {
    ++exchange_.counters().local_prompts;
    co_return Received{};
  }
  co_return pull(leg);
}

std::expected<Received, ApiError> RelayDialect::pull(const Leg& leg) {
  const std::string& object = *leg.request.transfer.kv_transfer_params;
  if (!flag_member(object, "do_remote_prefill")) {
    return loss_.faulty_relay("decode request: kv_transfer_params.do_remote_prefill: expected true");
  }
  const auto engine_id = string_member(object, "remote_engine_id");
  const auto request_id = string_member(object, "remote_request_id");
  if (!engine_id || !request_id) {
    return loss_.faulty_relay("decode request: kv_transfer_params has no remote_engine_id or no remote_request_id");
  }
  if (leg.request.prompts.size() > 1) return loss_.faulty_relay("decode request: the KV of one of several prompts");
  auto offer = exchange_.take(key_of(*engine_id, *request_id));
  if (!offer) {
    return loss_.faulty_relay("no KV of " + *request_id + " is held: its lease ended, or it was pulled before");
  }
  if (!loss_.recompute() && offer->proof != object) {
    return loss_.faulty_relay("kv_transfer_params differ from those of the prefill answer: expected " + offer->proof +
                              " and got " + object);
  }
  if (leg.lose_kv || !offer->kv) return loss_.broken_transfer();
  Received received{.kv = {}, .transferred = true};
  received.kv.push_back(std::move(offer->kv));
  return received;
}

}  // namespace balanceroute::emulator
