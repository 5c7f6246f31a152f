#include "proxy/dashboard.hpp"

#include <fmt/format.h>
#include <openssl/sha.h>

#include <algorithm>
#include <array>
#include <utility>

#include "proxy/admin_request.hpp"

namespace balanceroute::proxy {

namespace {

// Nothing from elsewhere, nothing inline, in nobody's frame.
constexpr std::string_view kPolicy =
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self'; base-uri 'none'; "
    "form-action 'none'; frame-ancestors 'none'";

constexpr std::string_view kMissing =
    "This program was built without the dashboard (BALANCEROUTE_DASHBOARD=OFF).\n"
    "The admin listener answers /workers, /config, /metrics and the other paths of docs/operations.md.\n";

std::string tag_of(std::string_view content) {
  std::array<unsigned char, SHA256_DIGEST_LENGTH> digest{};
  SHA256(reinterpret_cast<const unsigned char*>(content.data()), content.size(), digest.data());
  std::string tag = "\"";
  for (std::size_t i = 0; i < 12; ++i) tag += fmt::format("{:02x}", digest[i]);
  return tag + "\"";
}

net::HttpResponse response_of(const DashboardFile& file, const std::string& tag) {
  net::HttpResponse response{.status = 200, .headers = {}, .body = std::string{file.content}};
  response.headers.add("Content-Type", std::string{file.content_type});
  response.headers.add("Cache-Control", "no-cache");
  response.headers.add("ETag", tag);
  response.headers.add("Content-Security-Policy", std::string{kPolicy});
  response.headers.add("X-Content-Type-Options", "nosniff");
  response.headers.add("Referrer-Policy", "no-referrer");
  response.headers.add("Cross-Origin-Opener-Policy", "same-origin");
  return response;
}

}  // namespace

Dashboard::Dashboard(std::vector<DashboardFile> files) {
  if (files.empty()) files.push_back({"/", "text/plain; charset=utf-8", kMissing});
  for (const DashboardFile& file : files) entries_.push_back({file, tag_of(file.content)});
}

const Dashboard::Entry* Dashboard::find(std::string_view path) const {
  const auto found = std::ranges::find(entries_, path, [](const Entry& entry) { return entry.file.path; });
  return found == entries_.end() ? nullptr : &*found;
}

bool Dashboard::has(std::string_view path) const {
  return find(path) != nullptr;
}

net::asio::awaitable<void> Dashboard::serve(net::HttpExchange& exchange, std::string_view path) const {
  const net::HttpRequest& request = exchange.request();
  if (request.method != "GET" && request.method != "HEAD") {
    co_await exchange.respond(wrong_method("GET, HEAD"));
    co_return;
  }
  const Entry& entry = *find(path);
  net::HttpResponse response = response_of(entry.file, entry.tag);
  if (request.headers.find("If-None-Match") == entry.tag) {
    response.status = 304;
    response.body.clear();
  }
  co_await exchange.respond(std::move(response));
}

}  // namespace balanceroute::proxy
