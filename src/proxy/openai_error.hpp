// openai_error.hpp - errors as clients of OpenAI's and Anthropic's APIs expect them.
#pragma once

#include <chrono>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace balanceroute::proxy {

struct ApiError {
  int status;
  std::string_view type;  // OpenAI's error type, e.g. "invalid_request_error"
  std::string_view code;  // ours, stable, one word for each cause
  std::string message;
  std::string param{};
  std::chrono::seconds retry_after{1};  // of 429 and 503
};

// Which API's clients are to understand it; responses differ from the others of OpenAI in events only.
enum class ErrorShape { OpenAi, Responses, Anthropic };

// Of a path's errors.
ErrorShape shape_of(std::string_view path);

std::string error_json(const ApiError& error, ErrorShape shape = ErrorShape::OpenAi);

// Says by `x-should-retry`, which OpenAI's SDKs obey, whether to try again; 503 and 429 carry Retry-After.
net::HttpResponse error_response(const ApiError& error, ErrorShape shape = ErrorShape::OpenAi);

// The same as the last event of a stream whose status has gone out already.
std::string error_event(const ApiError& error, ErrorShape shape = ErrorShape::OpenAi);

// For what the HTTP layer refuses before there is a request.
net::HttpResponse http_error_response(int status, std::string_view detail);

}  // namespace balanceroute::proxy
