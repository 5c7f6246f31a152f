#include "emulator/layerwise_dialect.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

namespace balanceroute::emulator {
namespace {

namespace asio = boost::asio;
using Json = nlohmann::ordered_json;

constexpr std::int64_t kMostBlocks = 64;  // told of a long prompt; the list is opaque to everybody but engines

ApiError failure(std::string message) {
  return {.status = 500, .type = "InternalServerError", .message = std::move(message), .param = ""};
}

// Ids as the engine has them outside: with the API's prefix, of text completions with the number of the prompt.
std::string child_id_of(const Leg& leg, std::size_t prompt) {
  if (leg.request.api == Api::chat) return "chatcmpl-" + leg.request_id;
  return "cmpl-" + leg.request_id + "-" + std::to_string(prompt);
}

// The objects that a prefill request carries, one for each prompt, by the id that they name.
std::vector<std::pair<std::string, std::string>> objects_of(const TransferMembers& members) {
  std::vector<std::pair<std::string, std::string>> objects;
  if (members.batch_kv_transfer_params) {
    const auto batch = Json::parse(*members.batch_kv_transfer_params, nullptr, false);
    if (batch.is_object()) {
      for (const auto& [id, object] : batch.items()) objects.emplace_back(id, object.dump());
    }
    return objects;
  }
  if (!members.kv_transfer_params) return objects;
  const auto id = string_member(*members.kv_transfer_params, "request_id");
  if (id) objects.emplace_back(*id, *members.kv_transfer_params);
  return objects;
}

}  // namespace

std::expected<void, ApiError> LayerwiseDialect::check_prefill(const Leg& leg) {
  const auto refuse = [&](std::string message) {
    return std::unexpected{relay_fault(exchange_, "prefill request: " + std::move(message), "kv_transfer_params")};
  };
  const auto& members = leg.request.transfer;
  if (members.batch_kv_transfer_params && !members.kv_transfer_params) {
    return refuse("batch_kv_transfer_params without kv_transfer_params");
  }
  if (auto right = check_vllm_prefill(leg, exchange_); !right) return right;
  const auto objects = objects_of(members);
  if (objects.size() != leg.request.prompts.size()) {
    return refuse("kv_transfer_params of " + std::to_string(objects.size()) + " prompts: expected " +
                  std::to_string(leg.request.prompts.size()));
  }
  for (const auto& [id, object] : objects) {
    const auto* expected = exchange_.expectation(id);
    if (expected == nullptr && exchange_.is_abandoned(id)) continue;  // its KV goes nowhere, as at a real engine
    if (expected == nullptr) return refuse("request_id " + id + ": no decode engine waits for it");
    if (expected->proof() != object) return refuse("expected " + expected->proof() + " and got " + object);
  }
  return {};
}

asio::awaitable<std::expected<std::string, ApiError>> LayerwiseDialect::prefilled(const Leg& leg,
                                                                                  ComputedPrompts /*prompts*/) {
  if (leg.lose_kv) {
    ++exchange_.counters().transfers_lost;
    co_return std::unexpected{failure("KV transfer failed")};
  }
  for (const auto& [id, object] : objects_of(leg.request.transfer)) {
    ++exchange_.counters().offered;
    if (auto* expected = exchange_.expectation(id)) {
      expected->fulfil();
    } else {
      ++exchange_.counters().abandoned;
    }
  }
  co_return std::string{};
}

asio::awaitable<std::expected<Received, ApiError>> LayerwiseDialect::receive(const Leg& leg) {
  const auto& params = leg.request.transfer.kv_transfer_params;
  if (!params || flag_member(*params, "do_virtual")) {
    ++exchange_.counters().local_prompts;
    co_return Received{};
  }
  if (!flag_member(*params, "do_remote_prefill")) {
    co_return std::unexpected{relay_fault(
        exchange_, "decode request: kv_transfer_params.do_remote_prefill: expected true", "kv_transfer_params")};
  }
  const auto target = parse_target(string_member(*params, "metaserver").value_or(""));
  if (!target) {
    co_return std::unexpected{relay_fault(exchange_, "decode request: kv_transfer_params.metaserver: " + target.error(),
                                          "kv_transfer_params")};
  }
  // All callbacks go out before the first one is answered: routers wait for all children of a request.
  std::vector<std::unique_ptr<KvExchange::Expectation>> expected;
  for (std::size_t i = 0; i < leg.request.prompts.size(); ++i) {
    auto id = child_id_of(leg, i);
    auto object = callback_object(leg, id, leg.request.prompts[i].tokens);
    expected.push_back(std::make_unique<KvExchange::Expectation>(exchange_, id, object));
    tasks_.spawn(call_router(*target, std::move(id), std::move(object)));
  }
  for (const auto& one : expected) {
    const auto waited = co_await one->decided().wait(thread_.now() + exchange_.lease());
    if (waited != net::WaitResult::Set) co_return std::unexpected{failure("no prefill engine pushed the KV in time")};
    if (!one->failure().empty()) co_return std::unexpected{failure(one->failure())};
  }
  if (leg.lose_kv) {
    ++exchange_.counters().transfers_lost;
    co_return std::unexpected{failure("KV load failure: the transfer of the prompt's KV broke")};
  }
  co_return Received{.kv = {}, .transferred = true};
}

std::expected<LayerwiseDialect::Target, std::string> LayerwiseDialect::parse_target(std::string_view url) {
  constexpr std::string_view kScheme = "://";
  const auto scheme = url.find(kScheme);
  const auto slash = scheme == std::string_view::npos ? scheme : url.find('/', scheme + kScheme.size());
  if (slash == std::string_view::npos) return std::unexpected{std::string{url} + ": expected http://host:port/path"};
  auto endpoint = net::parse_http_url(url.substr(0, slash));
  if (!endpoint) return std::unexpected{std::string{url} + ": " + endpoint.error()};
  return Target{*std::move(endpoint), std::string{url.substr(slash)}};
}

std::string LayerwiseDialect::callback_object(const Leg& leg, const std::string& child_id, Tokens prompt) {
  const auto blocks = (prompt.count() + block_size_ - 1) / block_size_;
  auto ids = Json::array();
  for (std::int64_t i = 0; i < std::min(blocks, kMostBlocks); ++i) ids.push_back(next_++);
  return Json{{"request_id", child_id},
              {"token_ids", Json::array()},
              {"do_remote_prefill", false},
              {"do_remote_decode", true},
              {"remote_block_ids", Json::array({std::move(ids)})},
              {"remote_block_size", {block_size_}},
              {"remote_engine_id", leg.engine.engine_id},
              {"remote_host", leg.engine.host},
              {"remote_port", 36'000 + static_cast<std::int64_t>(leg.engine.rank)},
              {"remote_tp_size", 1},
              {"remote_pcp_size", 1},
              {"remote_dcp_size", 1},
              {"remote_cached_tokens", 0}}
      .dump();
}

asio::awaitable<void> LayerwiseDialect::call_router(Target target, std::string child_id, std::string object) {
  auto& client =
      clients_.try_emplace(target.endpoint.authority(), thread_, target.endpoint, net::ClientOptions{}).first->second;
  net::HttpRequest request{.method = "POST", .target = target.path, .headers = {}, .body = std::move(object)};
  request.headers.add("Content-Type", "application/json");
  const auto deadline = thread_.now() + exchange_.lease();
  const auto call = co_await client.send(request, deadline);
  std::string why;
  if (!call) {
    why = call.error().detail;
  } else if (call->head().status != 200) {
    why = "status " + std::to_string(call->head().status);
  }
  auto* expected = exchange_.expectation(child_id);
  if (!why.empty() && expected != nullptr) {
    expected->fail("metaserver http://" + target.endpoint.authority() + target.path + ": " + why);
  }
}

}  // namespace balanceroute::emulator
