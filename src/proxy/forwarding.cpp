#include "proxy/forwarding.hpp"

#include <algorithm>
#include <array>
#include <boost/asio/error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/system/system_error.hpp>
#include <map>
#include <tuple>
#include <utility>

#include "proxy/authentication.hpp"
#include "proxy/request_heads.hpp"
#include "proxy/request_record.hpp"
#include "proxy/snapshots.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

constexpr std::size_t kForwardedAnswerBytes = 64 * 1024 * 1024;

struct ForwardedPath {
  std::string_view path;
  std::string_view method;
};

constexpr std::array kForwardedPaths{
    ForwardedPath{"/v1/embeddings", "POST"}, ForwardedPath{"/v2/embed", "POST"},
    ForwardedPath{"/rerank", "POST"},        ForwardedPath{"/v1/rerank", "POST"},
    ForwardedPath{"/v2/rerank", "POST"},     ForwardedPath{"/score", "POST"},
    ForwardedPath{"/v1/score", "POST"},      ForwardedPath{"/classify", "POST"},
    ForwardedPath{"/pooling", "POST"},       ForwardedPath{"/tokenize", "POST"},
    ForwardedPath{"/detokenize", "POST"},    ForwardedPath{"/v1/messages/count_tokens", "POST"},
    ForwardedPath{"/version", "GET"}};

net::asio::awaitable<std::expected<net::HttpResponse, net::NetError>> ask_engine(net::HttpClient& engine,
                                                                                 const net::HttpRequest& request,
                                                                                 net::TimePoint deadline) {
  auto call = co_await engine.send(request, deadline);
  if (!call) co_return std::unexpected(call.error());
  auto body = co_await call->read_all(kForwardedAnswerBytes, deadline);
  if (!body) co_return std::unexpected(body.error());
  if (auto none = without_answer(call->head().status)) co_return std::unexpected(*std::move(none));
  net::HttpResponse answer = call->head();
  answer.body = std::move(*body);
  co_return answer;
}

Outcome outcome_of(int status) {
  if (status < 400) return Outcome::Ok;
  return status < 500 ? Outcome::ClientError : Outcome::UpstreamError;
}

}  // namespace

std::string_view Forwarding::method_of(std::string_view path) {
  const auto known = std::ranges::find(kForwardedPaths, path, &ForwardedPath::path);
  return known == kForwardedPaths.end() ? std::string_view{} : known->method;
}

std::expected<Forwarding::Job, ApiError> Forwarding::read(const net::HttpRequest& request, std::string_view id,
                                                          const ApiKeyParams* key) const {
  const bool trusted = service_.params->trusted;
  if (const auto header = forbidden_header(request); header && !trusted) {
    return std::unexpected(
        api_error(400, "forbidden_header", "the header '" + std::string{*header} + "' may not be sent by clients"));
  }
  Job job{.request = engine_request(request, id)};
  if (key != nullptr) remove_client_keys(job.request.headers);
  if (request.method != "POST") {
    job.fleet = service_.fleets.front().get();
    job.fleet->engine_key().sign(job.request.headers);
    return job;
  }
  const auto body = read_generation_body(request.body, GenerationKind::Other, trusted ? Trust::full : Trust::none);
  if (!body) return std::unexpected(api_error(400, "bad_body", body.error().message, body.error().param));
  const bool named = body->place(Member::Model).has_value();
  if (!named && service_.fleets.size() > 1) {
    return std::unexpected(api_error(400, "bad_body", "'model' is missing, and there are several fleets", "model"));
  }
  for (const auto& fleet : service_.fleets) {
    if (!named || fleet->engine_model(body->model)) job.fleet = fleet.get();
  }
  if (!job.fleet) {
    return std::unexpected(
        api_error(404, "model_not_found", "the model '" + body->model + "' is not served here", "model"));
  }
  job.fleet->engine_key().sign(job.request.headers);
  BodyEdit edit{request.body, *body};
  if (named) job.fleet->rename_model(edit, body->model);
  job.request.body = std::move(edit).apply();
  job.model = body->model;
  return job;
}

net::asio::awaitable<std::vector<WorkerId>> Forwarding::servers(Fleet& fleet, net::IoThread& thread) const {
  struct Server {
    WorkerId worker;  // any of it
    bool ready = false;
    std::int32_t sequences = 0;
  };
  std::map<std::string, Server> by_address;
  const auto snapshots = co_await take_snapshots(thread, service_.fleets, false);
  for (const FleetSnapshot& snapshot : snapshots) {
    if (snapshot.fleet != fleet.name()) continue;
    for (const WorkerRecord& worker : snapshot.workers) {
      if (worker.state == WorkerState::removed) continue;
      Server& server = by_address[worker.key.url];
      server.worker = worker.id;
      server.ready = server.ready || worker.eligible;
      server.sequences += worker.sequences;
    }
  }
  std::vector<Server> ordered;
  for (const auto& [address, server] : by_address) ordered.push_back(server);
  std::ranges::stable_sort(ordered, {}, [](const Server& one) { return std::tuple{!one.ready, one.sequences}; });
  std::vector<WorkerId> workers;
  for (const Server& server : ordered) workers.push_back(server.worker);
  co_return workers;
}

net::asio::awaitable<std::expected<net::HttpResponse, Failure>> Forwarding::ask(Job& job, net::IoThread& thread) const {
  const TimeoutParams& timeouts = service_.params->timeouts;
  const std::chrono::duration<double, std::milli> patience{std::min(timeouts.first_byte_ms, timeouts.request_ms)};
  const net::TimePoint deadline = service_.clock.now() + std::chrono::duration_cast<net::Duration>(patience);
  Failure failure = failure_of(PlacementError::NoWorkerReady);
  const RetryParams& retries = service_.params->retries;
  job.fleet->retry_budget().earn(retries);
  std::optional<net::HttpResponse> last;
  std::int64_t tries = 0;
  bool broke_one = false;
  const std::vector<WorkerId> in_turn = co_await servers(*job.fleet, thread);
  for (const WorkerId worker : in_turn) {
    net::HttpClient& client = job.fleet->clients(service_.index_of(thread)).of(worker);
    const std::string address = job.fleet->address(worker).endpoint.authority();
    auto answer = co_await ask_engine(client, job.request, deadline);
    Retry retry = Retry::never;
    if (answer) {
      retry = retries.of_status(answer->status);
      if (retry == Retry::never) co_return std::move(*answer);
      last = std::move(*answer);
    } else {
      job.fleet->worker_failed(worker, answer.error());
      failure = failure_of(answer.error(), address);
      retry = failure.retry;
    }
    if (retry == Retry::never || (retry == Retry::once && std::exchange(broke_one, true))) break;
    if (tries++ >= retries.most || (retry != Retry::freely && !job.fleet->retry_budget().spend())) break;
    service_.metrics.request_retried();
  }
  if (last) co_return std::move(*last);
  co_return std::unexpected(std::move(failure));
}

net::asio::awaitable<void> Forwarding::forward(net::HttpExchange& exchange, const ApiKeyParams* key) {
  RequestRecord record{service_.metrics, service_.log, service_.spans, service_.clock, exchange.request().headers};
  record.id = new_request_key();
  record.path = exchange.request().path();
  record.client = exchange.peer();
  record.client_id = exchange.request().headers.find("X-Request-Id").value_or("");
  const ErrorShape shape = shape_of(record.path);
  if (key != nullptr) record.tenant = key->tenant.name;
  auto job = read(exchange.request(), record.id, key);
  if (!job) {
    record.finished(Outcome::ClientError, job.error().status, job.error().message);
    co_await exchange.respond(error_response(job.error(), shape));
    co_return;
  }
  record.model = job->model;
  record.trace.begin_leg(Leg::whole, {}, job->request.headers);
  std::expected<net::HttpResponse, Failure> answer = std::unexpected(client_left());
  try {
    answer = co_await ask(*job, exchange.thread());
  } catch (const boost::system::system_error& cancelled) {
    // Between two waits.
    if (cancelled.code() != net::asio::error::operation_aborted) throw;
  }
  if (!answer && answer.error().client_left()) {
    if (exchange.client_left()) co_return;
    co_await net::asio::this_coro::throw_if_cancelled(false);
    answer = std::unexpected(router_stopping());
  }
  if (!answer) {
    const Failure& why = answer.error();
    record.finished(why.outcome, why.error.status, why.log_reason.empty() ? why.error.message : why.log_reason);
    co_await exchange.respond(error_response(answer.error().error, shape));
    co_return;
  }
  net::HttpResponse response = client_answer(*answer, record.client_id);
  response.body = std::move(answer->body);
  const int status = response.status;
  co_await exchange.respond(std::move(response));
  if (exchange.finished()) record.finished(outcome_of(status), status);
}

}  // namespace balanceroute::proxy
