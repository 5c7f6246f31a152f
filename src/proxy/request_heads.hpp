// request_heads.hpp - the heads of requests on their way to engines and of answers on their way back.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "net/http.hpp"

namespace balanceroute::proxy {

// 128 random bits in hexadecimal.
[[nodiscard]] std::string new_request_key();

// "/v1/models/" is "/v1/models", here and at the engine: a redirect would lose the client's Authorization on the way.
[[nodiscard]] std::string_view without_final_slash(std::string_view path);

// The first header by which the client would address an engine's inside (engine-protocols 2.1 and 2.4).
[[nodiscard]] std::optional<std::string_view> forbidden_header(const net::HttpRequest& request);

// The client's request as an engine gets it, without its body; `id` becomes its X-Request-Id.
[[nodiscard]] net::HttpRequest engine_request(const net::HttpRequest& client, std::string_view id);

// An engine's answer as the client gets it, without its body. The client's own id, if it has one, is echoed.
[[nodiscard]] net::HttpResponse client_answer(const net::HttpResponse& engine, std::string_view client_id);

}  // namespace balanceroute::proxy
