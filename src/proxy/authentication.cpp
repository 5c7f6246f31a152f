#include "proxy/authentication.hpp"

#include <optional>

namespace balanceroute::proxy {

namespace {

constexpr std::string_view kAuthorization = "Authorization";
constexpr std::string_view kAnthropicKey = "x-api-key";

// The scheme's name may be written in any case (RFC 9110, 11.1).
std::optional<std::string_view> bearer_of(const net::HttpRequest& request) {
  constexpr std::string_view kScheme = "Bearer ";
  const auto value = request.headers.find(kAuthorization);
  if (!value || value->size() < kScheme.size()) return std::nullopt;
  if (!net::iequals(value->substr(0, kScheme.size()), kScheme)) return std::nullopt;
  const std::size_t start = value->find_first_not_of(' ', kScheme.size());
  if (start == std::string_view::npos) return std::nullopt;
  return value->substr(start);
}

}  // namespace

std::expected<const ApiKeyParams*, ApiError> identify(const ApiKeys& keys, const net::HttpRequest& request,
                                                      ErrorShape shape) {
  if (!keys.needed()) return nullptr;
  const auto bearer = bearer_of(request);
  const auto other = shape == ErrorShape::Anthropic ? request.headers.find(kAnthropicKey) : std::nullopt;
  if (!bearer && !other) {
    return std::unexpected(ApiError{401, "invalid_request_error", "missing_api_key",
                                    "the API key is missing: expected Authorization: Bearer KEY"});
  }
  for (const auto& secret : {bearer, other}) {
    if (!secret) continue;
    if (const ApiKeyParams* known = keys.find(*secret)) return known;
  }
  return std::unexpected(ApiError{401, "invalid_request_error", "invalid_api_key", "the API key is not known here"});
}

net::HttpResponse unauthorized(const ApiError& error, ErrorShape shape) {
  net::HttpResponse response = error_response(error, shape);
  response.headers.add("WWW-Authenticate", "Bearer");
  return response;
}

void remove_client_keys(net::HeaderList& headers) {
  headers.remove(kAuthorization);
  headers.remove(kAnthropicKey);
}

}  // namespace balanceroute::proxy
