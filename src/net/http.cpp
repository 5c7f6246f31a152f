#include "net/http.hpp"

#include <algorithm>
#include <array>
#include <boost/beast/http/status.hpp>
#include <cctype>

namespace balanceroute::net {

bool iequals(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; };
  return std::ranges::equal(a, b, {}, lower, lower);
}

void HeaderList::set(std::string_view name, std::string value) {
  remove(name);
  add(std::string{name}, std::move(value));
}

void HeaderList::remove(std::string_view name) {
  std::erase_if(fields_, [name](const auto& field) { return iequals(field.first, name); });
}

std::optional<std::string_view> HeaderList::find(std::string_view name) const {
  const auto found = std::ranges::find_if(fields_, [name](const auto& field) { return iequals(field.first, name); });
  if (found == fields_.end()) return std::nullopt;
  return found->second;
}

std::size_t HeaderList::count(std::string_view name) const {
  return static_cast<std::size_t>(
      std::ranges::count_if(fields_, [name](const auto& field) { return iequals(field.first, name); }));
}

std::string_view HttpRequest::path() const {
  return std::string_view{target}.substr(0, target.find('?'));
}

std::string_view HttpRequest::query() const {
  const auto mark = target.find('?');
  return mark == std::string::npos ? std::string_view{} : std::string_view{target}.substr(mark + 1);
}

std::string_view reason_phrase(int status) {
  namespace http = boost::beast::http;
  const http::status known = http::int_to_status(static_cast<unsigned>(status));
  return known == http::status::unknown ? std::string_view{"Unknown"} : std::string_view{http::obsolete_reason(known)};
}

bool is_hop_by_hop(std::string_view name) {
  static constexpr std::array<std::string_view, 9> kNames{
      "Connection",        "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE",
      "Transfer-Encoding", "Trailer",    "Upgrade"};
  return std::ranges::any_of(kNames, [name](std::string_view known) { return iequals(known, name); });
}

HttpResponse json_response(int status, std::string body) {
  HttpResponse response{.status = status, .headers = {}, .body = std::move(body)};
  response.headers.add("Content-Type", "application/json");
  return response;
}

HttpResponse text_response(int status, std::string body) {
  HttpResponse response{.status = status, .headers = {}, .body = std::move(body)};
  response.headers.add("Content-Type", "text/plain; charset=utf-8");
  return response;
}

}  // namespace balanceroute::net
