#include "proxy/admin_guard.hpp"

#include <boost/asio/ip/address.hpp>
#include <string_view>

namespace balanceroute::proxy {

namespace {

// "127.0.0.1:8081" -> "127.0.0.1", "[::1]:8081" -> "::1".
std::string_view name_in(std::string_view authority) {
  if (authority.starts_with('[')) return authority.substr(1, authority.find(']') - 1);
  return authority.substr(0, authority.find(':'));
}

bool is_own_name(std::string_view authority) {
  const std::string name{name_in(authority)};
  if (net::iequals(name, "localhost")) return true;
  boost::system::error_code not_an_address;
  boost::asio::ip::make_address(name, not_an_address);
  return !not_an_address;
}

// "http://127.0.0.1:8081" -> "127.0.0.1:8081".
std::string_view authority_of(std::string_view origin) {
  const auto scheme_end = origin.find("://");
  return scheme_end == std::string_view::npos ? origin : origin.substr(scheme_end + 3);
}

}  // namespace

std::optional<std::string> foreign_page(const net::HttpRequest& request, bool has_token) {
  const std::string_view host = request.headers.find("Host").value_or("");
  const bool reads = request.method == "GET" || request.method == "HEAD";
  const bool harmless = reads && (request.path().starts_with("/health") || request.path() == "/metrics");
  // Of HTTP/1.0 without a Host no browser makes use.
  if (!has_token && !harmless && !host.empty() && !is_own_name(host)) {
    return "Host is '" + std::string{host} + "': expected an address or localhost, because no admin.token is set";
  }
  if (reads) return std::nullopt;
  const auto origin = request.headers.find("Origin");
  if (origin && !net::iequals(authority_of(*origin), host)) {
    return "it comes from a page of '" + std::string{*origin} + "': expected one of this listener, or no browser";
  }
  const std::string_view site = request.headers.find("Sec-Fetch-Site").value_or("same-origin");
  if (site != "same-origin" && site != "none") {
    return "Sec-Fetch-Site is '" + std::string{site} + "': expected same-origin";
  }
  return std::nullopt;
}

}  // namespace balanceroute::proxy
