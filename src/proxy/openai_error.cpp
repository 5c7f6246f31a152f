#include "proxy/openai_error.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

namespace {

std::string text_of(const nlohmann::ordered_json& body) {
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// Anthropic's word for what a status says.
std::string_view anthropic_type_of(int status) {
  switch (status) {
    case 401:
      return "authentication_error";
    case 404:
      return "not_found_error";
    case 413:
      return "request_too_large";
    case 429:
      return "rate_limit_error";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    default:
      return status < 500 ? "invalid_request_error" : "api_error";
  }
}

}  // namespace

ErrorShape shape_of(std::string_view path) {
  if (path.starts_with("/v1/messages")) return ErrorShape::Anthropic;
  return path == "/v1/responses" ? ErrorShape::Responses : ErrorShape::OpenAi;
}

std::string error_json(const ApiError& error, ErrorShape shape) {
  nlohmann::ordered_json body;
  if (shape == ErrorShape::Anthropic) {
    body["type"] = "error";
    body["error"] = {{"type", anthropic_type_of(error.status)}, {"message", error.message}};
    return text_of(body);
  }
  body["error"]["message"] = error.message;
  body["error"]["type"] = error.type;
  body["error"]["param"] = error.param.empty() ? nlohmann::ordered_json{} : nlohmann::ordered_json(error.param);
  body["error"]["code"] = error.code;
  return text_of(body);
}

net::HttpResponse error_response(const ApiError& error, ErrorShape shape) {
  net::HttpResponse response = net::json_response(error.status, error_json(error, shape));
  const bool busy = error.status == 429 || error.status == 503;
  if (busy) response.headers.add("Retry-After", std::to_string(error.retry_after.count()));
  response.headers.add("x-should-retry", busy || error.status == 502 ? "true" : "false");
  return response;
}

std::string error_event(const ApiError& error, ErrorShape shape) {
  if (shape == ErrorShape::OpenAi) return "data: " + error_json(error) + "\n\n";
  if (shape == ErrorShape::Anthropic) return "event: error\ndata: " + error_json(error, shape) + "\n\n";
  const nlohmann::ordered_json event{
      {"type", "error"}, {"code", error.code}, {"message", error.message}, {"param", nullptr}};
  return "event: error\ndata: " + text_of(event) + "\n\n";
}

net::HttpResponse http_error_response(int status, std::string_view detail) {
  std::string_view code = "bad_request";
  if (status == 408) code = "request_timeout";
  if (status == 413) code = "body_too_large";
  if (status == 431) code = "head_too_large";
  return error_response({status, "invalid_request_error", code, std::string{detail}});
}

}  // namespace balanceroute::proxy
