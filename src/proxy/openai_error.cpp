#include "proxy/openai_error.hpp"

#include <nlohmann/json.hpp>

namespace balanceroute::proxy {

std::string error_json(const ApiError& error) {
  nlohmann::ordered_json body;
  body["error"]["message"] = error.message;
  body["error"]["type"] = error.type;
  body["error"]["param"] = error.param.empty() ? nlohmann::ordered_json{} : nlohmann::ordered_json(error.param);
  body["error"]["code"] = error.code;
  return body.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

net::HttpResponse error_response(const ApiError& error) {
  net::HttpResponse response = net::json_response(error.status, error_json(error));
  const bool busy = error.status == 429 || error.status == 503;
  if (busy) response.headers.add("Retry-After", "1");
  response.headers.add("x-should-retry", busy || error.status == 502 ? "true" : "false");
  return response;
}

std::string error_event(const ApiError& error) {
  return "data: " + error_json(error) + "\n\n";
}

net::HttpResponse http_error_response(int status, std::string_view detail) {
  std::string_view code = "bad_request";
  if (status == 408) code = "request_timeout";
  if (status == 413) code = "body_too_large";
  if (status == 431) code = "head_too_large";
  return error_response({status, "invalid_request_error", code, std::string{detail}});
}

}  // namespace balanceroute::proxy
