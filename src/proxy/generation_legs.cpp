// What a generation sends to engines, in the order that the fleet's dialect says.
#include <array>
#include <random>
#include <utility>

#include "proxy/abandoned_kv.hpp"
#include "proxy/authentication.hpp"
#include "proxy/dialects/room_dialect.hpp"
#include "proxy/generation.hpp"
#include "proxy/request_heads.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

Failure refusal(PrefillOutcome outcome) {
  const int status = outcome.answer.status;
  return {Outcome::ClientError,
          api_error(status, "prefill_refused", "the prefill engine refused the request"),
          {},
          std::move(outcome.answer)};
}

constexpr std::string_view kPrefillFailed = "prefill_failed";

// The instance did not do its part; another one may.
Failure prefill_failure(std::string reason) {
  return {Outcome::UpstreamError, api_error(502, kPrefillFailed, "the prefill engine failed"), std::move(reason)};
}

bool is_prefill_failure(const std::optional<Failure>& failure) {
  return failure && failure->error.code == kPrefillFailed;
}

constexpr std::string_view kKvDropped = "kv_dropped";

// The instance did its part, and its engine kept nothing of it.
Failure kv_dropped() {
  return {Outcome::UpstreamError, api_error(502, kKvDropped, "the prefill engine kept no KV")};
}

}  // namespace

// An instance for the prompt, with the claim that holds it.
net::asio::awaitable<std::expected<PrefillId, Failure>> Generation::prefill_instance(Turn turn,
                                                                                     std::optional<PrefillId> avoid) {
  PrefillWork work{.tokens = prompt_size() * body_.prompts, .sequences = body_.sequences, .tenant = record_.tenant};
  claim_ = std::make_shared<std::optional<PrefillClaim>>(
      fleet_->prefills()->request(thread(), std::move(work), turn, avoid));
  const auto instance = co_await (*claim_)->assigned(after(service_.params->timeouts.arrival_ms));
  if (!instance) co_return std::unexpected(not_placed(instance.error(), Phase::arrival));
  record_.prefill_begun(fleet_->peer(*instance).endpoint.authority());
  co_return *instance;
}

// Prefill, decode; and all of it anew where the decode worker did not get the KV.
Generation::Stage Generation::open_prefilled() {
  for (std::int64_t attempt = 0;; ++attempt) {
    auto failure = co_await prefill_first();
    if (!failure) failure = co_await decode_prefilled();
    if (failure || !kv_was_lost() || attempt == fleet_->params().prefill.retries) co_return failure;
    service_.metrics.kv_lost();
    answer_.reset();
    placement_.reset();
    claim_->reset();
    begin_try();
  }
}

// The KV waits for whichever worker can be reached.
Generation::Stage Generation::decode_prefilled() {
  for (;;) {
    auto failure = co_await open_decode();
    if (!failure || failure->retry != Retry::freely || handover_.object.empty()) co_return failure;
    if (!may_try_again(failure->retry)) {
      failure->retry = Retry::never;
      co_return failure;
    }
    const bool here = co_await step_back(*failure, true);
    if (!here) co_return client_left();
    auto unplaced = co_await place(placed_prompt_);
    if (!unplaced) continue;
    if (unplaced->client_left()) {
      leave_kv();
      co_return unplaced;
    }
    failure->retry = Retry::never;
    co_return failure;
  }
}

// An engine says no more than that: whether it can be helped by another try is only known afterwards.
bool Generation::kv_was_lost() const {
  return answer_->failed_at_once() && (!handover_.object.empty() || handover_.prefill);
}

// KV that could wait no longer for a worker is computed once more.
Generation::Stage Generation::prefill_first() {
  auto failure = co_await prefill_and_place(Turn::InOrder);
  if (!failure || failure->error.code != to_string(PlacementError::HoldExpired)) co_return failure;
  placement_.reset();
  claim_->reset();
  begin_try();
  co_return co_await prefill_and_place(Turn::Next);
}

// Prefill, and then a place in the pool with the true size of the prompt.
Generation::Stage Generation::prefill_and_place(Turn first_turn) {
  std::optional<PrefillId> failed;
  std::string reason;
  bool late = false;
  Tokens prompt = prompt_size();
  for (std::int64_t attempt = 0; attempt <= fleet_->params().prefill.retries; ++attempt) {
    auto instance = co_await prefill_instance(attempt == 0 ? first_turn : Turn::Next, failed);
    if (!instance && instance.error().error.code != to_string(PlacementError::NoPrefillReady)) {
      co_return std::move(instance.error());
    }
    if (!instance) {
      reason = instance.error().error.message;
      break;
    }
    auto outcome = co_await prefill(fleet_->prefill_clients(thread_index_).of(*instance), prefill_request(*instance),
                                    after(service_.params->timeouts.prefill_ms));
    if (outcome.end == PrefillEnd::Cancelled) co_return client_left();
    if (outcome.end == PrefillEnd::Refused) co_return refusal(std::move(outcome));
    if (outcome.end == PrefillEnd::Computed) {
      record_.prefill_ended();
      learn(outcome.usage);
      if (outcome.usage) prompt = Tokens{outcome.usage->prompt_tokens};
      handover_.object = std::move(outcome.object);
      if (!handover_.object.empty()) prefilled_ = outcome.usage.value_or(Usage{});
      if (handover_.object.empty()) {
        // The engine kept nothing, so the decode worker computes the prompt again.
        (*claim_)->fetched();
        service_.metrics.decoded_alone("no_kv");
      }
      auto failure = co_await place(prompt);
      if (failure && failure->client_left()) leave_kv();
      co_return failure;
    }
    (*claim_)->failed();
    failed = *instance;
    reason = std::move(outcome.reason);
    late = outcome.late;
    service_.metrics.prefill_failed();
    begin_try();
  }
  claim_->reset();
  if (auto failure = without_prefill(std::move(reason), late)) co_return failure;
  co_return co_await place(prompt);
}

// The client has left, and the prefill engine holds the KV of its prompt.
void Generation::leave_kv() {
  if (handover_.object.empty() || !fleet_->params().prefill.drains_abandoned()) return;
  AbandonedKv abandoned{.fleet = *fleet_,
                        .thread_index = thread_index_,
                        .placement = std::move(*placement_),
                        .claim = std::exchange(claim_, std::make_shared<std::optional<PrefillClaim>>()),
                        .request = leg_request(Leg::decode, {}),
                        .body = body_,
                        .handover = handover_,
                        .deadline = after(service_.params->timeouts.admission_ms)};
  placement_.reset();
  abandoned.request.body = exchange_.request().body;
  service_.background.on(thread_index_).spawn(drain(std::move(abandoned)));
}

// The request goes on without a prefill leg, or does not.
std::optional<Failure> Generation::without_prefill(std::string reason, bool late) {
  if (out_of_time()) return deadline_passed(Phase::whole);
  if (fleet_->dialect().decodes_alone() && fleet_->params().prefill.decodes_alone_on_loss()) {
    service_.metrics.decoded_alone("prefill_lost");
    return std::nullopt;
  }
  Failure failure = late ? deadline_passed(Phase::prefill) : failure_of(PlacementError::NoPrefillReady);
  failure.log_reason = std::move(reason);
  return failure;
}

Generation::Stage Generation::open_decode() {
  net::HttpClient& client = fleet_->clients(thread_index_).of(worker_);
  const net::TimePoint deadline = after(service_.params->timeouts.first_byte_ms);
  auto call = co_await client.send(decode_request(), deadline);
  if (!call) co_return worker_failure(call.error());
  answer_.emplace(std::move(*call));
  const auto begun = co_await answer_->begin(body_.stream, deadline);
  if (!begun) co_return worker_failure(begun.error());
  co_return std::nullopt;
}

// Both legs at once. Engines meet by a name that only this try has.
Generation::Stage Generation::open_together() {
  std::optional<PrefillId> failed;
  std::string reason;
  for (std::int64_t attempt = 0; attempt <= fleet_->params().prefill.retries; ++attempt) {
    auto instance = co_await prefill_instance(Turn::Next, failed);
    if (!instance && instance.error().error.code != to_string(PlacementError::NoPrefillReady)) {
      co_return std::move(instance.error());
    }
    if (!instance) {
      reason = instance.error().error.message;
      break;
    }
    auto failure = co_await find_meeting_point(*instance);
    if (!failure) failure = co_await prefill_on(*instance);
    if (failure && failure->error.code == kKvDropped) co_return co_await decode_dropped();
    const bool lost = !failure && kv_was_lost() && attempt < fleet_->params().prefill.retries;
    if (!lost && !is_prefill_failure(failure)) co_return failure;
    fleet_->prefill_clients(thread_index_).forget_engine_id(*instance);
    if (lost) {
      service_.metrics.kv_lost();
      answer_.reset();
    } else {
      (*claim_)->failed();
      failed = *instance;
      reason = std::move(failure->log_reason);
      service_.metrics.prefill_failed();
    }
    begin_try();
  }
  claim_->reset();
  if (auto failure = without_prefill(std::move(reason))) co_return failure;
  co_return co_await open_decode();
}

// The answer is over with its first token, which the decode worker has to compute by itself.
Generation::Stage Generation::decode_dropped() {
  (*claim_)->fetched();
  service_.metrics.decoded_alone("no_kv");
  begin_try();
  return open_decode();
}

// Fills in where the engines meet.
Generation::Stage Generation::find_meeting_point(PrefillId instance) {
  thread_local std::mt19937_64 random{std::random_device{}()};
  handover_.prefill = &fleet_->peer(instance);
  handover_.usage = usage_wish_;
  handover_.rooms = fresh_rooms(*handover_.prefill, body_.prompts, random);
  if (!fleet_->dialect().needs_engine_id()) co_return std::nullopt;
  auto id =
      co_await fleet_->prefill_clients(thread_index_).engine_id(instance, after(service_.params->timeouts.connect_ms));
  if (!id && id.error().fault == net::NetFault::Cancelled) co_return client_left();
  if (!id) co_return prefill_failure(id.error().detail);
  handover_.engine_id = std::move(*id);
  co_return std::nullopt;
}

// Sends both legs and waits for the decode worker's first bytes.
Generation::Stage Generation::prefill_on(PrefillId instance) {
  auto pair = std::make_shared<LegPair>(thread());
  legs_ = pair;
  // The instance's time is over first: its silence is not the worker's.
  const net::TimePoint deadline = after(service_.params->timeouts.first_byte_ms);
  const net::TimePoint prefill_by = after(service_.params->timeouts.prefill_ms);
  net::TaskGroup& tasks = service_.background.on(thread_index_);
  net::HttpClient& engine = fleet_->prefill_clients(thread_index_).of(instance);
  net::HttpClient& worker = fleet_->clients(thread_index_).of(worker_);
  RunningLeg prefill_leg{tasks.spawn(
      run_prefill(pair, claim_, engine, prefill_request(instance), prompt_size() * body_.prompts, prefill_by))};
  const RunningLeg decode_leg{tasks.spawn(run_decode(pair, worker, decode_request(), body_.stream, deadline))};
  auto failure = co_await until_decode_begins(*pair);
  // The prefill engine may still be answering a request that it has done its part for.
  if (!failure) prefill_leg.let_go();
  co_return failure;
}

Generation::Stage Generation::until_decode_begins(LegPair& pair) {
  for (;;) {
    const net::WaitResult waited = co_await pair.changed.wait();
    if (waited == net::WaitResult::Cancelled) co_return client_left();
    pair.changed.reset();
    if (pair.decode) break;
    if (!pair.prefill) continue;
    if (pair.prefill->end == PrefillEnd::Computed) {
      if (fleet_->dialect().keeps_kv(pair.prefill->finish_reason)) continue;
      co_return kv_dropped();
    }
    if (pair.prefill->end == PrefillEnd::Refused) co_return refusal(std::move(*pair.prefill));
    co_return prefill_failure(pair.prefill->reason);
  }
  if (!*pair.decode) co_return worker_failure(pair.decode->error());
  answer_.emplace(std::move(**pair.decode));
  co_return std::nullopt;
}

// The decode leg first; its worker calls for the prefill when it has room for the KV.
Generation::Stage Generation::open_on_callback() {
  handover_.callback = callback_url();
  auto pair = std::make_shared<LegPair>(thread());
  legs_ = pair;
  const net::TimePoint deadline = after(service_.params->timeouts.first_byte_ms);
  net::TaskGroup& tasks = service_.background.on(thread_index_);
  net::HttpClient& worker = fleet_->clients(thread_index_).of(worker_);
  claim_ = std::make_shared<std::optional<PrefillClaim>>();
  std::optional<Failure> failure;
  {
    PrefillOnCall job{.thread = thread(),
                      .thread_index = thread_index_,
                      .fleet = *fleet_,
                      .calls = service_.callbacks.expect(thread(), record_.id, static_cast<std::size_t>(body_.prompts)),
                      .request = leg_request(Leg::prefill, {}),
                      .kind = kind_,
                      .body = body_,
                      .so_far = so_far_,
                      .prompt = prompt_size() * body_.prompts,
                      .retries = fleet_->params().prefill.retries,
                      .deadline = deadline};
    job.request.body = exchange_.request().body;
    RunningLeg prefill_leg{tasks.spawn(run_prefill_on_call(pair, claim_, std::move(job)))};
    const RunningLeg decode_leg{tasks.spawn(run_decode(pair, worker, decode_request(), body_.stream, deadline))};
    failure = co_await until_decode_begins(*pair);
    if (!failure) prefill_leg.let_go();
  }
  if (!is_prefill_failure(failure)) co_return failure;
  service_.metrics.prefill_failed();
  claim_->reset();
  std::string reason = std::move(failure->log_reason);
  begin_try();
  if (auto lost = without_prefill(std::move(reason))) co_return lost;
  co_return co_await open_decode();
}

std::string Generation::callback_url() const {
  std::string url = fleet_->params().prefill.callback_url;
  if (url.empty()) {
    const std::string& listen = service_.params->listen;
    url = (service_.params->tls.used() ? "https://" : "http://") + listen.substr(0, listen.rfind(':') + 1) +
          std::to_string(service_.client_port);
  }
  if (url.ends_with('/')) url.pop_back();
  return url + "/v1/metaserver";
}

net::HttpRequest Generation::leg_request(Leg leg, std::string engine) {
  net::HttpRequest request = engine_request(exchange_.request(), record_.id);
  record_.trace.begin_leg(leg, std::move(engine), request.headers);
  if (key_ != nullptr) remove_client_keys(request.headers);
  fleet_->engine_key().sign(request.headers);
  return request;
}

net::HttpRequest Generation::prefill_request(PrefillId instance) {
  net::HttpRequest request = leg_request(Leg::prefill, fleet_->peer(instance).endpoint.authority());
  BodyEdit edit{exchange_.request().body, body_};
  fleet_->rename_model(edit, body_.model);
  extend_prompt(edit, body_, kind_, so_far_);
  fleet_->dialect().edit_prefill(edit, body_, handover_);
  fleet_->name_prefill_rank(request, instance);
  request.body = std::move(edit).apply();
  return request;
}

net::HttpRequest Generation::decode_request() {
  net::HttpRequest request = leg_request(Leg::decode, fleet_->address(worker_).endpoint.authority());
  BodyEdit edit{exchange_.request().body, body_};
  fleet_->rename_model(edit, body_.model);
  extend_prompt(edit, body_, kind_, so_far_);
  shorten_limits(edit, body_, kind_, so_far_);
  if (usage_wish_ != UsageWish::None) edit.ask_for_usage(usage_wish_ == UsageWish::Continuous);
  if (answers_in_choices(kind_)) fleet_->dialect().edit_decode(edit, body_, handover_);
  fleet_->name_rank(request, edit, worker_);
  request.body = std::move(edit).apply();
  return request;
}

}  // namespace balanceroute::proxy
