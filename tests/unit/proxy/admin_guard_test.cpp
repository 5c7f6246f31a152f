#include "proxy/admin_guard.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace balanceroute::proxy {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

bool passes(const std::string& method, const std::string& path, const Headers& headers, bool has_token = false) {
  net::HttpRequest request{.method = method, .target = path};
  for (const auto& [name, value] : headers) request.headers.add(name, value);
  return !foreign_page(request, has_token);
}

// Law: commands without a browser pass, whatever name of an address they use.
TEST(AdminGuard, CommandLinesPass) {
  EXPECT_TRUE(passes("POST", "/workers/drain", {{"Host", "127.0.0.1:8081"}}));
  EXPECT_TRUE(passes("DELETE", "/workers?id=3", {{"Host", "localhost:8081"}}));
  EXPECT_TRUE(passes("PUT", "/policy", {{"Host", "[::1]:8081"}}));
  EXPECT_TRUE(passes("GET", "/workers", {{"Host", "10.0.0.7"}}));
  EXPECT_TRUE(passes("GET", "/workers", {}));
}

// Law: a change from a page passes if, and only if, the page is this listener's.
TEST(AdminGuard, OnlyOwnPagesChangeSomething) {
  const std::string host = "127.0.0.1:8081";
  EXPECT_TRUE(passes("POST", "/workers/drain",
                     {{"Host", host}, {"Origin", "http://127.0.0.1:8081"}, {"Sec-Fetch-Site", "same-origin"}}));
  EXPECT_FALSE(passes("POST", "/workers/drain", {{"Host", host}, {"Origin", "http://evil.example"}}));
  EXPECT_FALSE(passes("POST", "/workers/drain", {{"Host", host}, {"Origin", "http://127.0.0.1:9999"}}));
  EXPECT_FALSE(passes("POST", "/workers/drain", {{"Host", host}, {"Origin", "null"}}));
  EXPECT_FALSE(passes("POST", "/workers/drain", {{"Host", host}, {"Sec-Fetch-Site", "cross-site"}}));
  EXPECT_FALSE(passes("DELETE", "/workers?id=1", {{"Host", host}, {"Sec-Fetch-Site", "same-site"}}));
  EXPECT_FALSE(passes("POST", "/workers/drain", {{"Host", host}, {"Origin", "http://evil.example"}}, true));
}

// Law: without a token nobody else's name leads here, for his page would be of the same origin; with one it may.
TEST(AdminGuard, NamesNeedAToken) {
  EXPECT_FALSE(passes("GET", "/debug/ledger", {{"Host", "evil.example:8081"}}));
  EXPECT_FALSE(passes("GET", "/live", {{"Host", "localhost.evil.example"}}));
  EXPECT_TRUE(passes("GET", "/debug/ledger", {{"Host", "router.internal:8081"}}, true));
}

// Law: probes and scrapers may use any name, but only read.
TEST(AdminGuard, ProbesAndScrapersMayUseNames) {
  EXPECT_TRUE(passes("GET", "/health/ready", {{"Host", "router.internal:8081"}}));
  EXPECT_TRUE(passes("GET", "/metrics", {{"Host", "router.internal:8081"}}));
  EXPECT_FALSE(passes("POST", "/metrics", {{"Host", "router.internal:8081"}}));
}

}  // namespace
}  // namespace balanceroute::proxy
