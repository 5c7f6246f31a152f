#include "proxy/leg_pair.hpp"

#include <nlohmann/json.hpp>
#include <utility>

#include "proxy/fleet.hpp"

namespace balanceroute::proxy {

namespace {

PrefillOutcome ended(PrefillEnd how, std::string reason) {
  PrefillOutcome outcome;
  outcome.end = how;
  outcome.reason = std::move(reason);
  return outcome;
}

PrefillOutcome without_instance(PlacementError cause) {
  const bool cancelled = cause == PlacementError::Cancelled;
  return ended(cancelled ? PrefillEnd::Cancelled : PrefillEnd::Failed, std::string{to_string(cause)});
}

// One object as it was written; of several, all by id.
void fill_in(Handover& handover, const std::vector<std::pair<std::string, std::string>>& objects) {
  handover.object = objects.front().second;
  if (objects.size() == 1) return;
  std::string batch;
  for (const auto& [id, object] : objects) {
    batch += (batch.empty() ? "{" : ",") + nlohmann::json(id).dump() + ":" + object;
  }
  handover.batch = batch + "}";
}

std::string prefill_body(const PrefillOnCall& job, const Handover& handover) {
  BodyEdit edit{job.request.body, job.body};
  job.fleet.rename_model(edit, job.body.model);
  extend_prompt(edit, job.body, job.kind, job.so_far);
  job.fleet.dialect().edit_prefill(edit, job.body, handover);
  return std::move(edit).apply();
}

net::asio::awaitable<PrefillOutcome> prefill_called_for(SharedClaim claim, PrefillOnCall& job) {
  const net::WaitResult waited = co_await job.calls->complete().wait(job.deadline);
  if (waited == net::WaitResult::Cancelled) co_return ended(PrefillEnd::Cancelled, {});
  if (waited == net::WaitResult::Timeout) co_return ended(PrefillEnd::Failed, "the decode worker did not call");
  Handover handover;
  fill_in(handover, job.calls->objects());
  std::optional<PrefillId> failed;
  PrefillOutcome outcome;
  for (std::int64_t attempt = 0; attempt <= job.retries; ++attempt) {
    claim->emplace(job.fleet.prefills()->request(job.thread, {.tokens = job.prompt}, Turn::Next, failed));
    const auto instance = co_await (*claim)->assigned(job.deadline);
    if (!instance) co_return without_instance(instance.error());
    net::HttpRequest request = job.request;
    request.body = prefill_body(job, handover);
    job.fleet.name_prefill_rank(request, *instance);
    outcome = co_await prefill(job.fleet.prefill_clients(job.thread_index).of(*instance), request, job.deadline);
    if (outcome.end != PrefillEnd::Failed) break;
    (*claim)->failed();
    failed = *instance;
  }
  co_return outcome;
}

}  // namespace

net::asio::awaitable<void> run_decode(std::shared_ptr<LegPair> pair, net::HttpClient& worker, net::HttpRequest request,
                                      bool as_stream, net::TimePoint deadline) {
  auto call = co_await worker.send(request, deadline);
  request.body = {};
  if (!call) {
    pair->decode = std::unexpected(call.error());
  } else {
    DecodeAnswer answer{std::move(*call)};
    const auto begun = co_await answer.begin(as_stream, deadline);
    if (begun) {
      pair->decode = std::move(answer);
    } else {
      pair->decode = std::unexpected(begun.error());
    }
  }
  pair->changed.set();
}

net::asio::awaitable<void> run_prefill(std::shared_ptr<LegPair> pair, SharedClaim claim, net::HttpClient& engine,
                                       net::HttpRequest request, Tokens prompt, net::TimePoint deadline) {
  auto outcome = co_await prefill(engine, request, deadline);
  if (outcome.end == PrefillEnd::Computed && *claim) (*claim)->computed(prompt);
  if (outcome.end == PrefillEnd::Failed && *claim) (*claim)->failed();
  pair->prefill = std::move(outcome);
  pair->changed.set();
}

net::asio::awaitable<void> run_prefill_on_call(std::shared_ptr<LegPair> pair, SharedClaim claim, PrefillOnCall job) {
  auto outcome = co_await prefill_called_for(claim, job);
  if (outcome.end == PrefillEnd::Computed) {
    // Its layers have been pushed one by one: the engine keeps nothing.
    (*claim)->fetched();
    job.calls->fulfil();
  }
  pair->prefill = std::move(outcome);
  pair->changed.set();
}

}  // namespace balanceroute::proxy
