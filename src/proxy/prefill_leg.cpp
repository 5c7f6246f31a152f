#include "proxy/prefill_leg.hpp"

#include <simdjson.h>

#include <utility>

namespace balanceroute::proxy {

namespace {

constexpr std::chrono::hours kLongestLease{1};
constexpr std::size_t kAnswerBytes = 64 * 1024 * 1024;

PrefillOutcome failed(std::string reason) {
  PrefillOutcome outcome;
  outcome.reason = std::move(reason);
  return outcome;
}

PrefillOutcome failed(const net::NetError& error) {
  PrefillOutcome outcome = failed(error.detail);
  if (error.fault == net::NetFault::Cancelled) outcome.end = PrefillEnd::Cancelled;
  outcome.late = error.fault == net::NetFault::Timeout;
  return outcome;
}

// Statuses that another engine, or the same one later, need not give (engine-protocols 1.1).
bool may_pass(int status) {
  return status == 408 || status == 429 || status >= 500;
}

}  // namespace

net::asio::awaitable<PrefillOutcome> prefill(net::HttpClient& engine, const net::HttpRequest& request,
                                             net::TimePoint deadline) {
  auto call = co_await engine.send(request, deadline);
  if (!call) co_return failed(call.error());
  auto body = co_await call->read_all(kAnswerBytes, deadline);
  if (!body) co_return failed(body.error());
  const int status = call->head().status;
  if (may_pass(status)) co_return failed("status " + std::to_string(status) + ": " + body->substr(0, 300));
  PrefillOutcome outcome;
  if (status != 200) {
    outcome.end = PrefillEnd::Refused;
    outcome.answer = call->head();
    outcome.answer.body = std::move(*body);
    co_return outcome;
  }
  outcome.end = PrefillEnd::Computed;
  outcome.object = object_member(*body, "kv_transfer_params");
  const StreamEvent answer = read_whole_answer(*body);
  outcome.usage = answer.usage;
  outcome.finish_reason = answer.finish_reason;
  co_return outcome;
}

std::optional<net::Duration> stated_lease(std::string_view object, std::chrono::system_clock::time_point now) {
  thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string text{object};
  simdjson::ondemand::document document;
  double until = 0;  // seconds since the epoch
  if (parser.iterate(text).get(document)) return std::nullopt;
  if (document.find_field_unordered("remote_blocks_expiry_time").get_double().get(until)) return std::nullopt;
  const std::chrono::duration<double> left{until - std::chrono::duration<double>{now.time_since_epoch()}.count()};
  if (left.count() <= 0 || left > kLongestLease) return std::nullopt;
  return std::chrono::duration_cast<net::Duration>(left);
}

std::string object_member(std::string_view json, std::string_view name) {
  thread_local simdjson::ondemand::parser parser;
  const simdjson::padded_string text{json};
  simdjson::ondemand::document document;
  simdjson::ondemand::object root;
  simdjson::ondemand::object member;
  std::string_view raw;
  if (parser.iterate(text).get(document) || document.get_object().get(root)) return {};
  if (root.find_field_unordered(name).get_object().get(member) || member.raw_json().get(raw)) return {};
  return std::string{raw.substr(0, raw.find_last_not_of(" \t\r\n") + 1)};  // it reaches to the next token
}

}  // namespace balanceroute::proxy
