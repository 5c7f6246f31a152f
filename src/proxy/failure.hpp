// failure.hpp - why a request gets no answer from a decode worker, and what its client is told.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/error.hpp"
#include "net/http.hpp"
#include "proxy/dispatcher.hpp"
#include "proxy/openai_error.hpp"
#include "proxy/retry.hpp"
#include "telemetry/metrics.hpp"

namespace balanceroute::proxy {

struct Failure {
  telemetry::Outcome outcome;
  ApiError error;
  std::string log_reason{};                   // empty: the error's message
  std::optional<net::HttpResponse> answer{};  // an engine's own words, which the client gets instead
  Retry retry = Retry::never;

  [[nodiscard]] bool client_left() const { return outcome == telemetry::Outcome::ClientLeft; }
};

// What a request waited for when its time was over.
enum class Phase : std::uint8_t { arrival, prefill, pool, first_token, next_event, whole };

[[nodiscard]] ApiError api_error(int status, std::string_view code, std::string message, std::string param = {});

[[nodiscard]] Failure client_left();
// The request was cancelled by nobody but the router, which ends.
[[nodiscard]] Failure router_stopping();
// An engine's status that is no answer to a client's request: redirects are neither followed nor passed on.
[[nodiscard]] std::optional<net::NetError> without_answer(int status);
[[nodiscard]] Failure deadline_passed(Phase phase, std::string_view worker = {});
[[nodiscard]] Failure failure_of(PlacementError cause);
[[nodiscard]] Failure failure_of(const net::NetError& cause, std::string_view worker);

}  // namespace balanceroute::proxy
