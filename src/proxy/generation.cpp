#include "proxy/generation.hpp"

#include <spdlog/spdlog.h>

#include <array>
#include <nlohmann/json.hpp>
#include <random>
#include <utility>

#include "net/sse.hpp"
#include "proxy/stream_event.hpp"

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

constexpr std::size_t kWholeAnswerBytes = 256 * 1024 * 1024;

// Headers by which a client could address an engine's inside (engine-protocols 2.1 and 2.4).
constexpr std::array<std::string_view, 4> kEngineHeaders{"X-data-parallel-rank", "X-data-parallel-host-port",
                                                         "X-Prefiller-Host-Port", "X-Vllm-Priority"};
// Headers that the router sets itself or that concern the client's connection only.
constexpr std::array<std::string_view, 5> kOwnHeaders{"Host", "Content-Length", "Expect", "Accept-Encoding",
                                                      "X-Request-Id"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view other) { return net::iequals(name, other); });
}

// 128 random bits in hexadecimal, new for every try.
std::string new_request_key() {
  thread_local std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::string_view type_of(int status) {
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

ApiError api_error(int status, std::string_view code, std::string message, std::string param = {}) {
  return {status, type_of(status), code, std::move(message), std::move(param)};
}

struct Failure {
  Outcome outcome;
  ApiError error;
};

Failure failure_of(PlacementError cause) {
  const std::string_view code = to_string(cause);
  switch (cause) {
    case PlacementError::QueueFull:
      return {Outcome::Rejected, api_error(429, code, "too many requests wait for a worker")};
    case PlacementError::NoWorkerReady:
      return {Outcome::Rejected, api_error(503, code, "no decode worker is ready")};
    case PlacementError::TooManySequences:
      return {Outcome::ClientError,
              api_error(400, code, "the request asks for more answers at once than any worker has slots")};
    case PlacementError::TooManyTokens:
      return {Outcome::ClientError, api_error(400, code, "the prompt is larger than any worker can hold")};
    case PlacementError::Timeout:
      return {Outcome::Rejected, api_error(503, code, "no decode worker had room in time")};
    case PlacementError::Cancelled:
    case PlacementError::Internal:
      break;
  }
  return {Outcome::UpstreamError, api_error(500, code, "the router could not place the request")};
}

Failure failure_of(const net::NetError& cause, std::string_view worker) {
  const std::string at = " (worker " + std::string{worker} + ")";
  switch (cause.fault) {
    case net::NetFault::Timeout:
      return {Outcome::Timeout, api_error(504, "worker_timeout", "the worker did not answer in time" + at)};
    case net::NetFault::Connect:
    case net::NetFault::Resolve:
      return {Outcome::UpstreamError, api_error(502, "worker_unreachable", "the worker cannot be reached" + at)};
    default:
      return {Outcome::UpstreamError, api_error(502, "worker_broken", "the worker broke off its answer" + at)};
  }
}

bool is_event_stream(const net::HttpResponse& head) {
  const auto type = head.headers.find("Content-Type");
  return type && type->starts_with("text/event-stream");
}

}  // namespace

std::size_t ServiceContext::index_of(const net::IoThread& thread) const {
  for (std::size_t i = 0; i < threads.size(); ++i) {
    if (&threads.at(i) == &thread) return i;
  }
  std::unreachable();
}

Generation::Generation(ServiceContext& service, net::HttpExchange& exchange, GenerationKind kind)
    : service_{service},
      exchange_{exchange},
      kind_{kind},
      thread_index_{service.index_of(exchange.thread())},
      record_{service.metrics, service.log, service.clock} {
  record_.id = new_request_key();
  record_.path = exchange.request().path();
  record_.client = exchange.peer();
  record_.client_id = exchange.request().headers.find("X-Request-Id").value_or("");
}

net::asio::awaitable<void> Generation::run() {
  if (auto refused = refused_header()) {
    co_await fail(Outcome::ClientError, std::move(*refused));
    co_return;
  }
  auto read = read_generation_body(exchange_.request().body, kind_);
  if (!read) {
    co_await fail(Outcome::ClientError, api_error(400, "bad_body", read.error().message, read.error().param));
    co_return;
  }
  body_ = std::move(*read);
  record_.model = body_.model;
  record_.sequences = body_.sequences;
  fleet_ = find_fleet();
  if (!fleet_) {
    co_await fail(Outcome::ClientError,
                  api_error(404, "model_not_found", "the model '" + body_.model + "' is not served here", "model"));
    co_return;
  }

  placement_.emplace(fleet_->dispatcher().request(exchange_.thread(), thread_index_, size()));
  const auto placed = co_await placement_->placed(after(service_.params.timeouts.admission_ms));
  if (!placed) {
    if (placed.error() == PlacementError::Cancelled) co_return;
    Failure failure = failure_of(placed.error());
    co_await fail(failure.outcome, std::move(failure.error));
    co_return;
  }
  record_.placed(fleet_->endpoint(placed->worker).authority(), *placed);

  net::HttpClient& client = fleet_->clients(thread_index_).of(placed->worker);
  auto call = co_await client.send(upstream_request(), after(service_.params.timeouts.first_byte_ms));
  if (!call) {
    if (call.error().fault == net::NetFault::Cancelled) co_return;
    Failure failure = failure_of(call.error(), record_.worker());
    co_await fail(failure.outcome, std::move(failure.error), call.error().detail);
    co_return;
  }
  if (body_.stream && call->head().status == 200 && is_event_stream(call->head())) {
    co_await relay_stream(*call);
  } else {
    co_await relay_whole(*call);
  }
}

net::asio::awaitable<void> Generation::fail(Outcome outcome, ApiError error, std::string log_reason) {
  if (placement_) placement_->leave();
  record_.finished(outcome, error.status, log_reason.empty() ? error.message : std::move(log_reason));
  net::HttpResponse response = error_response(error);
  if (!record_.client_id.empty()) response.headers.add("X-Request-Id", record_.client_id);
  co_await exchange_.respond(std::move(response));
}

std::optional<ApiError> Generation::refused_header() const {
  for (const auto& [name, value] : exchange_.request().headers) {
    if (is_one_of(name, kEngineHeaders)) {
      return api_error(400, "forbidden_header", "the header '" + name + "' may not be sent by clients");
    }
  }
  return std::nullopt;
}

Fleet* Generation::find_fleet() {
  for (const auto& fleet : service_.fleets) {
    if (const auto model = fleet->engine_model(body_.model)) {
      engine_model_ = *model;
      return fleet.get();
    }
  }
  return nullptr;
}

RequestSize Generation::size() const {
  const Tokens prompt =
      body_.prompt_tokens ? Tokens{*body_.prompt_tokens} : fleet_->estimator().estimate(body_.prompt_bytes);
  return {.prompt = prompt, .sequences = body_.sequences};
}

net::HttpRequest Generation::upstream_request() const {
  const net::HttpRequest& from = exchange_.request();
  net::HttpRequest to;
  to.method = from.method;
  to.target = from.target;
  for (const auto& [name, value] : from.headers) {
    if (!net::is_hop_by_hop(name) && !is_one_of(name, kOwnHeaders)) to.headers.add(name, value);
  }
  to.headers.add("X-Request-Id", record_.id);
  to.body = upstream_body();
  return to;
}

std::string Generation::upstream_body() const {
  Splice splice{exchange_.request().body};
  if (engine_model_ != body_.model) splice.replace(body_.model_span, nlohmann::json(engine_model_).dump());
  if (body_.stream && !body_.client_wants_usage()) ask_for_usage(body_, splice);
  return splice.apply();
}

net::HttpResponse Generation::client_head(const net::HttpResponse& upstream) const {
  net::HttpResponse head{.status = upstream.status, .headers = {}, .body = {}};
  for (const auto& [name, value] : upstream.headers) {
    if (net::is_hop_by_hop(name) || net::iequals(name, "Content-Length") || net::iequals(name, "X-Request-Id"))
      continue;
    head.headers.add(name, value);
  }
  if (!record_.client_id.empty()) head.headers.add("X-Request-Id", record_.client_id);
  return head;
}

net::TimePoint Generation::after(double milliseconds) const {
  const std::chrono::duration<double, std::milli> wait{milliseconds};
  return service_.clock.now() + std::chrono::duration_cast<net::Duration>(wait);
}

void Generation::learn(const std::optional<Usage>& usage) {
  if (!usage) return;
  record_.prompt_tokens = usage->prompt_tokens;
  // With several prompts usage is their sum, which says nothing about one.
  if (!body_.prompt_tokens && body_.sequences == 1) {
    fleet_->estimator().learn(body_.prompt_bytes, usage->prompt_tokens);
  }
}

net::asio::awaitable<void> Generation::relay_whole(net::HttpCall& call) {
  auto answer = co_await call.read_all(kWholeAnswerBytes, after(service_.params.timeouts.first_byte_ms));
  const std::optional<Usage> usage = answer ? read_usage(*answer) : std::nullopt;
  if (usage && call.head().status == 200) placement_->finish(tokens_each(usage->completion_tokens));
  placement_->leave();  // without a count nothing is known of its length
  if (answer && answer->empty() && call.head().status == 200) {
    answer = std::unexpected(net::NetError{net::NetFault::Closed, "the worker answered 200 with an empty body"});
  }
  if (!answer) {
    if (answer.error().fault == net::NetFault::Cancelled) co_return;
    Failure failure = failure_of(answer.error(), record_.worker());
    co_await fail(failure.outcome, std::move(failure.error), answer.error().detail);
    co_return;
  }
  const int status = call.head().status;
  learn(usage);
  if (usage) record_.progress(usage->completion_tokens);
  net::HttpResponse response = client_head(call.head());
  response.body = std::move(*answer);
  co_await exchange_.respond(std::move(response));
  Outcome outcome = status < 400 ? Outcome::Ok : Outcome::ClientError;
  if (status >= 500) outcome = Outcome::UpstreamError;
  if (exchange_.finished()) record_.finished(outcome, status);
}

// Relay takes a stream apart, keeps what the client shall have in `out`, and follows progress.
class Generation::Relay {
 public:
  explicit Relay(Generation& generation) : generation_{generation} {}

  // Everything that came in one read goes out in one write.
  std::string out;
  bool any_event = false;
  bool done = false;
  std::optional<std::string> error;  // the worker's own error event

  void feed(std::string_view bytes) {
    splitter_.feed(bytes, [this](std::string_view event) { take(event); });
  }
  bool cut_inside_event() const { return !splitter_.rest().empty(); }

 private:
  void take(std::string_view bytes) {
    const StreamEvent event = read_stream_event(net::sse_data(bytes, scratch_));
    any_event = true;
    done = done || event.done;
    if (event.error) error = event.error_message;
    tokens_ += event.tokens;
    finished_ += event.finished;
    if (event.usage) tokens_ = std::max(tokens_, event.usage->completion_tokens);
    if (event.usage) generation_.learn(event.usage);
    generation_.record_.progress(tokens_);
    const std::int64_t tokens = generation_.tokens_each(tokens_);
    generation_.placement_->progress(tokens);
    if (error) {
      generation_.placement_->leave();
    } else if (finished_ >= generation_.body_.sequences || done) {
      generation_.placement_->finish(tokens);
    }
    if (event.usage_only && !generation_.body_.client_wants_usage()) return;
    out.append(bytes);
  }

  Generation& generation_;
  net::SseSplitter splitter_;
  std::string scratch_;
  std::int64_t tokens_ = 0;
  std::int32_t finished_ = 0;
};

net::asio::awaitable<void> Generation::relay_stream(net::HttpCall& call) {
  Relay relay{*this};
  std::optional<net::NetError> broken;
  net::TimePoint deadline = after(service_.params.timeouts.first_byte_ms);
  for (;;) {
    const auto bytes = co_await call.read_body(deadline);
    if (!bytes && bytes.error().fault == net::NetFault::Cancelled) co_return;
    if (!bytes) broken = bytes.error();
    if (!bytes || bytes->empty()) break;
    relay.feed(*bytes);
    // The status goes out with the first event, so a worker that fails at once still gives a status that says so.
    if (relay.error && !exchange_.started()) break;
    if (relay.any_event && !exchange_.started()) exchange_.start(client_head(call.head()));
    deadline = after(service_.params.timeouts.stream_idle_ms);
    if (relay.out.empty()) continue;
    net::WriteStatus status = exchange_.write(relay.out);
    relay.out.clear();
    if (status == net::WriteStatus::Full) status = co_await exchange_.drained();
    if (status == net::WriteStatus::Gone) co_return;
  }
  placement_->leave();
  if (!broken && !relay.error && !relay.done) {
    broken = net::NetError{net::NetFault::Closed, relay.cut_inside_event() ? "the stream ended inside an event"
                                                                           : "the stream ended without [DONE]"};
  }
  if (relay.error) broken = net::NetError{net::NetFault::Protocol, "the worker reported: " + *relay.error};
  if (!broken) {
    co_await exchange_.finish();
    if (exchange_.finished()) record_.finished(Outcome::Ok, 200);
    co_return;
  }
  Failure failure = failure_of(*broken, record_.worker());
  if (!exchange_.started()) {
    co_await fail(failure.outcome, std::move(failure.error), broken->detail);
    co_return;
  }
  record_.finished(failure.outcome, 200, broken->detail);
  // A worker's own error event has been passed on already.
  if (!relay.error) exchange_.write(error_event(failure.error));
  co_await exchange_.flushed();  // and then the connection breaks: no proper end
}

}  // namespace balanceroute::proxy
