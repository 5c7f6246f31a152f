#include "proxy/failure.hpp"

#include <utility>

namespace balanceroute::proxy {

namespace {

using telemetry::Outcome;

std::string_view type_of(int status) {
  if (status == 429) return "rate_limit_error";
  return status < 500 ? "invalid_request_error" : "server_error";
}

}  // namespace

ApiError api_error(int status, std::string_view code, std::string message, std::string param) {
  return {status, type_of(status), code, std::move(message), std::move(param)};
}

Failure client_left() {
  return {Outcome::ClientLeft, api_error(499, "client_left", "the client closed the connection")};
}

Failure router_stopping() {
  return {Outcome::Rejected, api_error(503, "router_stopping", "the router stops; another one may answer")};
}

std::optional<net::NetError> without_answer(int status) {
  if ((status >= 200 && status < 300) || status >= 400) return std::nullopt;
  return net::NetError{net::NetFault::Protocol, "the worker answered status " + std::to_string(status)};
}

Failure deadline_passed(Phase phase, std::string_view worker) {
  const auto late = [](std::string_view code, std::string message) {
    return Failure{Outcome::Timeout, api_error(504, code, std::move(message))};
  };
  const std::string at = " (worker " + std::string{worker} + ")";
  switch (phase) {
    case Phase::arrival:
      return late("arrival_timeout", "no prefill instance had room in time");
    case Phase::prefill:
      return late("prefill_timeout", "no prefill instance answered in time");
    case Phase::pool:
      return late("admission_timeout", "no decode worker had room in time");
    case Phase::first_token:
      return late("worker_timeout", "the worker did not answer in time" + at);
    case Phase::next_event:
      return late("stream_timeout", "the worker fell silent within its answer" + at);
    case Phase::whole:
      return late("request_timeout", "the time of the request was over");
  }
  std::unreachable();
}

Failure failure_of(PlacementError cause) {
  const std::string_view code = to_string(cause);
  switch (cause) {
    case PlacementError::QueueFull:
      return {Outcome::Rejected, api_error(429, code, "too many requests wait for a worker")};
    case PlacementError::NoWorkerReady:
      return {Outcome::Rejected, api_error(503, code, "no decode worker is ready")};
    case PlacementError::NoPrefillReady:
      return {Outcome::Rejected, api_error(503, code, "no prefill instance is ready")};
    case PlacementError::TooManySequences:
      return {Outcome::ClientError,
              api_error(400, code, "the request asks for more answers at once than any worker has slots")};
    case PlacementError::ExceedsQuota:
      return {Outcome::ClientError,
              api_error(400, code, "the request asks for more answers at once than its API key may have")};
    case PlacementError::TooManyTokens:
      return {Outcome::ClientError, api_error(400, code, "the prompt is larger than any worker can hold")};
    case PlacementError::Timeout:
      return deadline_passed(Phase::pool);
    case PlacementError::HoldExpired:
      return {Outcome::Rejected, api_error(503, code, "no decode worker had room while the prompt's KV was held")};
    case PlacementError::Cancelled:
      return client_left();
    case PlacementError::Internal:
      break;
  }
  return {Outcome::UpstreamError, api_error(500, code, "the router could not place the request")};
}

Failure failure_of(const net::NetError& cause, std::string_view worker) {
  const std::string at = " (worker " + std::string{worker} + ")";
  switch (cause.fault) {
    case net::NetFault::Cancelled:
      return client_left();
    case net::NetFault::Timeout:
      return deadline_passed(Phase::first_token, worker);
    case net::NetFault::Connect:
    case net::NetFault::Resolve:
      return {.outcome = Outcome::UpstreamError,
              .error = api_error(502, "worker_unreachable", "the worker cannot be reached" + at),
              .log_reason = cause.detail,
              .retry = Retry::freely};
    case net::NetFault::TooLarge:
      return {Outcome::UpstreamError, api_error(502, "answer_too_large", "the worker's answer is too large" + at),
              cause.detail};
    default:
      return {.outcome = Outcome::UpstreamError,
              .error = api_error(502, "worker_broken", "the worker broke off its answer" + at),
              .log_reason = cause.detail,
              .retry = Retry::once};
  }
}

}  // namespace balanceroute::proxy
