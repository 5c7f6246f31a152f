// authentication.hpp - whose request it is, by the key it brings.
#pragma once

#include <expected>
#include <string_view>

#include "net/http.hpp"
#include "proxy/api_keys.hpp"
#include "proxy/openai_error.hpp"

namespace balanceroute::proxy {

// The entry of the request's key, or nullptr where none is needed; else what its client is told. A key comes as
// `Authorization: Bearer KEY`, and to Anthropic's API also as `x-api-key: KEY`.
[[nodiscard]] std::expected<const ApiKeyParams*, ApiError> identify(const ApiKeys& keys,
                                                                    const net::HttpRequest& request, ErrorShape shape);

// The answer to one that is not known.
[[nodiscard]] net::HttpResponse unauthorized(const ApiError& error, ErrorShape shape);

// Takes every header out that may hold a client's key.
void remove_client_keys(net::HeaderList& headers);

}  // namespace balanceroute::proxy
