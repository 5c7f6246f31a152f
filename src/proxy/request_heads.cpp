#include "proxy/request_heads.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>
#include <span>

namespace balanceroute::proxy {

namespace {

constexpr std::array<std::string_view, 4> kEngineHeaders{"X-data-parallel-rank", "X-data-parallel-host-port",
                                                         "X-Prefiller-Host-Port", "X-Vllm-Priority"};
// Headers that the router sets itself or that concern the client's connection only.
constexpr std::array<std::string_view, 5> kOwnHeaders{"Host", "Content-Length", "Expect", "Accept-Encoding",
                                                      "X-Request-Id"};

bool is_one_of(std::string_view name, std::span<const std::string_view> names) {
  return std::ranges::any_of(names, [name](std::string_view other) { return net::iequals(name, other); });
}

}  // namespace

std::string new_request_key() {
  thread_local std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}{:08x}", device(), device(), device(), device());
}

std::string_view without_final_slash(std::string_view path) {
  if (path.size() > 1 && path.ends_with('/')) path.remove_suffix(1);
  return path;
}

std::optional<std::string_view> forbidden_header(const net::HttpRequest& request) {
  for (const auto& [name, value] : request.headers) {
    if (is_one_of(name, kEngineHeaders)) return name;
  }
  return std::nullopt;
}

net::HttpRequest engine_request(const net::HttpRequest& client, std::string_view id) {
  net::HttpRequest request;
  request.method = client.method;
  request.target = without_final_slash(client.path());
  if (!client.query().empty()) request.target += "?" + std::string{client.query()};
  for (const auto& [name, value] : net::end_to_end(client.headers)) {
    if (!is_one_of(name, kOwnHeaders)) request.headers.add(name, value);
  }
  request.headers.add("X-Request-Id", std::string{id});
  return request;
}

net::HttpResponse client_answer(const net::HttpResponse& engine, std::string_view client_id) {
  net::HttpResponse answer{.status = engine.status, .headers = {}, .body = {}};
  for (const auto& [name, value] : net::end_to_end(engine.headers)) {
    if (net::iequals(name, "Content-Length") || net::iequals(name, "X-Request-Id")) continue;
    answer.headers.add(name, value);
  }
  if (!client_id.empty()) answer.headers.add("X-Request-Id", std::string{client_id});
  return answer;
}

}  // namespace balanceroute::proxy
