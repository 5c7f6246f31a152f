// admin_fuzz.cpp - any bytes that operators may send as a body, a query, a URL or a network are taken or refused; what
// is taken says what it means, and no refusal repeats a password.
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "core/param_check.hpp"
#include "net/networks.hpp"
#include "policy/policy_params.hpp"
#include "proxy/admin_request.hpp"
#include "proxy/fleet.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

void check_url(const std::string& url) {
  const auto endpoint = net::parse_http_url(url, net::Schemes::http_and_https);
  if (endpoint) {
    require(net::parse_http_url(endpoint->url(), net::Schemes::http_and_https) == *endpoint);
    require(net::without_userinfo(url) == url);
    require(endpoint->tls || net::parse_http_url(url).has_value());
  }
  require(net::without_userinfo("http://user:secret@" + url.substr(0, url.find_first_of("/@"))).find("secret") ==
              std::string::npos ||
          url.find("secret") != std::string::npos);
}

void check_worker(std::string_view body) {
  const auto worker = proxy::read_admin_body<proxy::WorkerParams>(body);
  if (!worker) {
    require(worker.error().status == 400 && !worker.error().message.empty());
    return;
  }
  auto params = *worker;
  require(!first_fault(params));
  check_url(params.url);
  const auto ranks = proxy::ranks_of(params);
  require(!ranks || ranks->size() == static_cast<std::size_t>(params.ranks));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text{reinterpret_cast<const char*>(data), size};
  check_worker(text);
  check_url(text);
  (void)proxy::read_admin_body<PolicyParams>(text);
  const auto query = proxy::json_of_query(text);
  require(!query || nlohmann::json::accept(*query));
  (void)net::Networks::parse({text});
  return 0;
}
