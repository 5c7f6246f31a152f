#include "proxy/generation.hpp"

#include <algorithm>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "proxy/request_heads.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

}  // namespace

std::size_t ServiceContext::index_of(const net::IoThread& thread) const {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (&threads.at(i) == &thread) return i;
  }
  std::unreachable();
}

Generation::Generation(ServiceContext& service, net::HttpExchange& exchange, GenerationKind kind,
                       const ApiKeyParams* key)
    : service_{service},
      exchange_{exchange},
      kind_{kind},
      key_{key},
      thread_index_{service.index_of(exchange.thread())},
      record_{service.metrics, service.log, service.spans, service.clock, exchange.request().headers} {
  deadline_ = after(service.params->timeouts.request_ms);
  begin_try();
  record_.path = exchange.request().path();
  record_.client = exchange.peer();
  if (key_ != nullptr) record_.tenant = key_->tenant.name;
  record_.client_id = exchange.request().headers.find("X-Request-Id").value_or("");
}

net::asio::awaitable<void> Generation::run() {
  auto failure = read();
  try {
    if (!failure) failure = co_await serve();
  } catch (const boost::system::system_error& cancelled) {
    // Between two waits.
    if (cancelled.code() != net::asio::error::operation_aborted) throw;
    failure = client_left();
  }
  if (!failure) {
    co_await relay();
  } else if (!is_nobodys(*failure)) {
    co_await net::asio::this_coro::throw_if_cancelled(false);  // though the router stops
    co_await fail(std::move(*failure));
  }
}

// Nobody hears of a failure whose client has left. What was cancelled though its client is there ends with the router.
bool Generation::is_nobodys(Failure& failure) const {
  if (!failure.client_left()) return false;
  if (exchange_.client_left()) return true;
  failure = router_stopping();
  return false;
}

std::optional<Failure> Generation::read() {
  const Trust trust = service_.params->trusted ? Trust::full : Trust::none;
  auto read = read_generation_body(exchange_.request().body, kind_, trust);
  if (!read) {
    return Failure{Outcome::ClientError, api_error(400, "bad_body", read.error().message, read.error().param)};
  }
  body_ = std::move(*read);
  record_.model = body_.model;
  record_.sequences = body_.sequences;
  fleet_ = find_fleet();
  if (!fleet_) {
    return Failure{Outcome::ClientError,
                   api_error(404, "model_not_found", "the model '" + body_.model + "' is not served here", "model")};
  }
  if (auto refused = refused_reach()) return refused;
  if (auto refused = fleet_->dialect().refusal(body_, kind_)) {
    return Failure{Outcome::ClientError,
                   api_error(400, "refused_by_dialect", std::move(refused->message), std::move(refused->param))};
  }
  wish_for_usage();
  know_prompt();
  return std::nullopt;
}

// While its text is there.
void Generation::know_prompt() {
  if (service_.history.on()) record_.keep_in(service_.history, fleet_->name());
  record_.output_limit = body_.output_limit;
  if (!service_.history.on() && !fleet_->looks_at_prompts()) return;
  record_.keys =
      prompt_keys(service_.history.hash(), *fleet_->engine_model(body_.model), body_, exchange_.request().body);
}

std::optional<Failure> Generation::refused_reach() const {
  if (service_.params->trusted && fleet_->params().dialect_kind() == DialectKind::Aggregated) return std::nullopt;
  if (!body_.engine_member.empty()) {
    auto refused = refused_member(body_.engine_member);
    return Failure{Outcome::ClientError,
                   api_error(400, "bad_body", std::move(refused.message), std::move(refused.param))};
  }
  const auto name = forbidden_header(exchange_.request());
  if (!name) return std::nullopt;
  return Failure{Outcome::ClientError, api_error(400, "forbidden_header",
                                                 "the header '" + std::string{*name} + "' may not be sent by clients")};
}

Fleet* Generation::find_fleet() {
  for (const auto& fleet : service_.fleets) {
    if (fleet->engine_model(body_.model)) return fleet.get();
  }
  return nullptr;
}

// So that tokens are counted: at the end of the stream, or in every event where events do not show them.
void Generation::wish_for_usage() {
  if (!body_.stream || !answers_in_choices(kind_)) return;
  if (fleet_->token_progress().continuous()) {
    usage_wish_ = UsageWish::Continuous;
  } else if (!body_.client_wants_usage()) {
    usage_wish_ = UsageWish::AtTheEnd;
  }
}

bool Generation::hands_over() const {
  return answers_in_choices(kind_) && fleet_->dialect().hands_over(body_);
}

ErrorShape Generation::error_shape() const {
  if (kind_ == GenerationKind::Message) return ErrorShape::Anthropic;
  return kind_ == GenerationKind::Response ? ErrorShape::Responses : ErrorShape::OpenAi;
}

// Until an answer has begun, other tries are nobody's business.
Generation::Stage Generation::serve() {
  fleet_->retry_budget().earn(service_.params->retries);
  std::optional<Failure> first;
  for (;;) {
    auto failure = co_await open();
    if (!failure) failure = rejected_rank();
    // That a worker failed says more than that there is no other one.
    if (first && failure && failure->outcome == Outcome::Rejected) co_return first;
    if (!may_try_again(failure ? failure->retry : retry_of_answer())) co_return failure;
    first = failure ? std::move(*failure) : give_up_answer();
    const bool here = co_await step_back(*first, false);
    if (!here) co_return client_left();
  }
}

Generation::Stage Generation::open() {
  const Dialect& dialect = fleet_->dialect();
  const LegOrder order = hands_over() ? dialect.order() : LegOrder::DecodeOnly;
  if (order == LegOrder::PrefillFirst) co_return co_await open_prefilled();
  auto failure = co_await place(prompt_size());
  if (failure) co_return failure;
  if (order == LegOrder::Together) co_return co_await open_together();
  if (order == LegOrder::OnCallback) co_return co_await open_on_callback();
  co_return co_await open_decode();
}

// A decode worker must have the request before the prefill engine drops its KV, with time to spare.
net::TimePoint Generation::hold_until() const {
  const net::TimePoint limit = after(fleet_->params().prefill.hold_limit_ms);
  const auto lease = stated_lease(handover_.object, std::chrono::system_clock::now());
  return lease ? std::min(limit, service_.clock.now() + *lease * 2 / 3) : limit;
}

// Waits for a worker.
Generation::Stage Generation::place(Tokens prompt) {
  placed_prompt_ = prompt;
  if (!so_far_.begun()) record_.placed_prompt_tokens = prompt.count();
  RequestSize size{.prompt = prompt,
                   .sequences = body_.sequences,
                   .reports = body_.stream,
                   .counted = body_.prompt_tokens || record_.prompt_tokens > 0,
                   .output_limit = std::min(Tokens{body_.output_limit.value_or(kMaxTokens.count())}, kMaxTokens),
                   .prompt_key = record_.keys.prompt,
                   .avoid = failed_workers_};
  if (!handover_.object.empty()) size.hold_until = hold_until();
  placement_.emplace(fleet_->dispatcher().request(thread(), thread_index_, size, record_.tenant));
  if (*claim_) (*claim_)->computed(prompt);  // from now on it counts as waiting in the pool
  const auto placed = co_await placement_->placed(after(service_.params->timeouts.admission_ms));
  if (!placed) co_return not_placed(placed.error(), Phase::pool);
  worker_ = placed->worker;
  const WorkerAddress& address = fleet_->address(worker_);
  record_.placed(address.endpoint.authority(), address.rank, *placed);
  record_.group = fleet_->group_name(placed->group);
  co_return std::nullopt;
}

Failure Generation::worker_failure(const net::NetError& cause, Phase phase) {
  const bool late = cause.fault == net::NetFault::Timeout;
  if (late && out_of_time()) return deadline_passed(Phase::whole);
  fleet_->worker_failed(worker_, cause);
  return late ? deadline_passed(phase, record_.worker()) : failure_of(cause, record_.worker());
}

Failure Generation::not_placed(PlacementError cause, Phase phase) const {
  if (cause != PlacementError::Timeout) return failure_of(cause);
  return deadline_passed(out_of_time() ? Phase::whole : phase);
}

net::asio::awaitable<void> Generation::fail(Failure failure) {
  if (placement_) placement_->leave();
  claim_->reset();
  std::string reason = failure.log_reason.empty() ? failure.error.message : std::move(failure.log_reason);
  if (failure.answer) {
    record_.finished(failure.outcome, failure.answer->status, std::move(reason));
    net::HttpResponse response = client_answer(*failure.answer, record_.client_id);
    response.body = std::move(failure.answer->body);
    co_await exchange_.respond(std::move(response));
    co_return;
  }
  record_.finished(failure.outcome, failure.error.status, std::move(reason));
  net::HttpResponse response = error_response(failure.error, error_shape());
  if (!record_.client_id.empty()) response.headers.add("X-Request-Id", record_.client_id);
  co_await exchange_.respond(std::move(response));
}

// Both legs of a try have one id; another try has another one.
void Generation::begin_try() {
  record_.id = new_request_key();
  handover_ = {};
  handover_.request_id = record_.id;
  prefilled_.reset();
  legs_.reset();
}

Tokens Generation::prompt_size() const {
  if (so_far_.prompt_tokens > 0) return Tokens{so_far_.prompt_tokens + so_far_.tokens};
  return body_.prompt_tokens ? Tokens{*body_.prompt_tokens} : fleet_->estimator().estimate(body_.prompt);
}

net::TimePoint Generation::after(double milliseconds) const {
  const std::chrono::duration<double, std::milli> wait{milliseconds};
  return std::min(deadline_, service_.clock.now() + std::chrono::duration_cast<net::Duration>(wait));
}

}  // namespace balanceroute::proxy
