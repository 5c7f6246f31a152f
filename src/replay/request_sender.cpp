#include "replay/request_sender.hpp"

#include <simdjson.h>

#include <algorithm>
#include <chrono>
#include <utility>

#include "net/event.hpp"
#include "net/sse.hpp"
#include "replay/request_text.hpp"

namespace balanceroute::replay {
namespace {

namespace asio = boost::asio;

constexpr net::Duration kModelsTime = std::chrono::seconds{10};
constexpr net::Duration kFirstPause = std::chrono::milliseconds{100};
constexpr std::int64_t kMostDoublings = 6;
constexpr std::size_t kShortBodyBytes = std::size_t{1} << 20;
constexpr std::size_t kAnswerBytes = std::size_t{1} << 28;
constexpr std::size_t kShownBytes = 200;

bool is_retryable(int status) {
  return status == 408 || status == 409 || status == 429 || status >= 500;
}

// A connection that failed before an answer began.
bool is_retryable(net::NetFault fault) {
  using enum net::NetFault;
  return fault == Connect || fault == Resolve || fault == Closed || fault == Reset;
}

FaultKind kind_of(net::NetFault fault) {
  switch (fault) {
    case net::NetFault::Resolve:
    case net::NetFault::Connect:
      return FaultKind::connect;
    case net::NetFault::Timeout:
      return FaultKind::timeout;
    case net::NetFault::Closed:
    case net::NetFault::Reset:
      return FaultKind::broken;
    case net::NetFault::Protocol:
    case net::NetFault::TooLarge:
      return FaultKind::bad_answer;
    case net::NetFault::Cancelled:
      return FaultKind::cancelled;
  }
  return FaultKind::broken;
}

Fault fault_of(const net::NetError& error) {
  return {kind_of(error.fault), std::string{net::to_string(error.fault)} + ": " + error.detail};
}

FaultKind kind_of_status(int status) {
  return status >= 500 ? FaultKind::status_5xx : FaultKind::status_4xx;
}

}  // namespace

RequestSender::RequestSender(net::IoThread& thread, net::Endpoint endpoint, std::string prefix,
                             const ReplayParams& params)
    : thread_{thread},
      client_{thread, std::move(endpoint), net::ClientOptions{}},
      prefix_{std::move(prefix)},
      params_{params} {}

std::unexpected<RequestSender::Failure> RequestSender::failure(Fault fault, bool may_retry) {
  return std::unexpected{Failure{std::move(fault), may_retry}};
}

asio::awaitable<std::expected<std::string, Fault>> RequestSender::first_model() {
  const auto deadline = thread_.now() + kModelsTime;
  net::HttpRequest request{.target = prefix_ + "/v1/models"};
  if (!params_.api_key.empty()) request.headers.add("Authorization", "Bearer " + params_.api_key);
  auto call = co_await client_.send(request, deadline);
  if (!call) co_return std::unexpected{fault_of(call.error())};
  const auto body = co_await call->read_all(kShortBodyBytes, deadline);
  if (!body) co_return std::unexpected{fault_of(body.error())};
  simdjson::dom::parser parser;
  std::string_view id;
  if (call->head().status != 200 || parser.parse(*body)["data"].at(0)["id"].get_string().get(id) != simdjson::SUCCESS) {
    co_return std::unexpected{Fault{kind_of_status(call->head().status),
                                    "GET " + request.target + ": status " + std::to_string(call->head().status) +
                                        ": expected a list of at least one model; name one with --model"}};
  }
  co_return std::string{id};
}

asio::awaitable<void> RequestSender::send(const PlannedRequest& planned, Outcome& outcome) {
  const auto timeout =
      std::chrono::duration_cast<net::Duration>(std::chrono::duration<double>{params_.request_timeout_s});
  const auto leaves = planned.leaves.value_or(net::kNever);
  const auto deadline = std::min(planned.due + timeout, leaves);
  for (;;) {
    const auto attempted = co_await attempt(planned, deadline, outcome);
    outcome.end = thread_.now();
    if (attempted) {
      outcome.fault.reset();
      co_return;
    }
    outcome.fault = attempted.error().fault;
    outcome.left = outcome.end >= leaves;
    if (outcome.left) co_return;
    if (!attempted.error().may_retry || outcome.retries == params_.retries) co_return;
    const auto length = kFirstPause * (std::int64_t{1} << std::min(outcome.retries, kMostDoublings));
    if (thread_.now() + length >= deadline) co_return;
    ++outcome.retries;
    co_await pause(length);
  }
}

net::HttpRequest RequestSender::http_request(const PlannedRequest& planned) const {
  net::HttpRequest request{.method = "POST", .target = prefix_ + std::string{path_of(params_.chosen_route())}};
  request.headers.add("Content-Type", "application/json");
  if (!params_.api_key.empty()) request.headers.add("Authorization", "Bearer " + params_.api_key);
  request.body = request_body({.route = params_.chosen_route(),
                               .model = model_,
                               .prompt = planned.prompt,
                               .output = planned.output,
                               .prefix_blocks = planned.prefix_blocks,
                               .stream = params_.stream,
                               .length_member = params_.chosen_length_member(),
                               .seed = planned.seed});
  return request;
}

asio::awaitable<RequestSender::Attempt> RequestSender::attempt(const PlannedRequest& planned, net::TimePoint deadline,
                                                               Outcome& outcome) {
  auto request = http_request(planned);
  if (!outcome.sent) outcome.sent = thread_.now();
  auto call = co_await client_.send(request, deadline);
  if (!call) co_return failure(fault_of(call.error()), is_retryable(call.error().fault));
  request.body = {};  // a long prompt is not kept while its answer runs
  if (call->head().status != 200) {
    auto refused = co_await read_refusal(*call, deadline);
    co_return refused;
  }
  if (params_.stream) {
    auto read = co_await read_stream(*call, planned, deadline, outcome);
    co_return read;
  }
  auto read = co_await read_whole(*call, planned, deadline, outcome);
  co_return read;
}

asio::awaitable<RequestSender::Attempt> RequestSender::read_refusal(net::HttpCall& call, net::TimePoint deadline) {
  const int status = call.head().status;
  const auto body = co_await call.read_all(kShortBodyBytes, deadline);
  co_return failure({kind_of_status(status),
                     "status " + std::to_string(status) + ": " + (body ? body->substr(0, kShownBytes) : "no body")},
                    is_retryable(status));
}

asio::awaitable<RequestSender::Attempt> RequestSender::read_stream(net::HttpCall& call, const PlannedRequest& planned,
                                                                   net::TimePoint deadline, Outcome& outcome) {
  const auto type = call.head().headers.find("Content-Type").value_or("no content type");
  if (!type.starts_with("text/event-stream")) {
    co_return failure(
        {FaultKind::bad_answer, "the answer is " + std::string{type} + ": expected a stream (text/event-stream)"});
  }
  AnswerCheck check;
  net::SseSplitter splitter;
  std::optional<Fault> fault;
  std::string scratch;
  const auto on_event = [&](std::string_view event) {
    const auto data = net::sse_data(event, scratch);
    if (data.empty() || fault) return;
    const auto token = check.take_event(data);
    if (!token) fault = token.error();
    if (!token || !*token) return;
    outcome.last_token = thread_.now();
    outcome.tokens = check.tokens();
    if (outcome.first_token) return;
    outcome.first_token = outcome.last_token;
    planned.on_first_token();
  };
  while (!fault) {
    const auto part = co_await call.read_body(deadline);
    if (!part) co_return failure(fault_of(part.error()));
    if (part->empty()) break;
    splitter.feed(*part, on_event);
  }
  if (fault) co_return failure(*std::move(fault));
  outcome.tokens = check.tokens();
  outcome.prompt = check.prompt();
  if (const auto whole = check.end(planned.output); !whole) co_return failure(whole.error());
  co_return Attempt{};
}

asio::awaitable<RequestSender::Attempt> RequestSender::read_whole(net::HttpCall& call, const PlannedRequest& planned,
                                                                  net::TimePoint deadline, Outcome& outcome) {
  const auto body = co_await call.read_all(kAnswerBytes, deadline);
  if (!body) co_return failure(fault_of(body.error()));
  AnswerCheck check;
  if (const auto taken = check.take_whole(*body); !taken) co_return failure(taken.error());
  if (const auto whole = check.end(planned.output); !whole) co_return failure(whole.error());
  outcome.tokens = check.tokens();
  outcome.prompt = check.prompt();
  co_return Attempt{};
}

asio::awaitable<void> RequestSender::pause(net::Duration length) {
  net::Event never{thread_};
  co_await never.wait(thread_.now() + length);
}

}  // namespace balanceroute::replay
