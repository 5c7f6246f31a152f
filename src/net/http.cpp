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

namespace {

bool is_hop_by_hop(std::string_view name) {
  static constexpr std::array<std::string_view, 10> kNames{
      "Connection",        "Keep-Alive", "Proxy-Connection", "Proxy-Authenticate", "Proxy-Authorization", "TE",
      "Transfer-Encoding", "Trailer",    "Upgrade",          "HTTP2-Settings"};
  return std::ranges::any_of(kNames, [name](std::string_view known) { return iequals(known, name); });
}

// Whether the list "a, b, c" has it.
bool has_word(std::string_view list, std::string_view word) {
  while (!list.empty()) {
    const auto comma = list.find(',');
    std::string_view one = list.substr(0, comma);
    const auto first = one.find_first_not_of(" \t");
    if (first != std::string_view::npos) one = one.substr(first, one.find_last_not_of(" \t") - first + 1);
    if (iequals(one, word)) return true;
    if (comma == std::string_view::npos) break;
    list.remove_prefix(comma + 1);
  }
  return false;
}

}  // namespace

HeaderList end_to_end(const HeaderList& headers) {
  HeaderList kept;
  const auto is_named = [&headers](std::string_view name) {
    return std::ranges::any_of(headers, [name](const auto& field) {
      return iequals(field.first, "Connection") && has_word(field.second, name);
    });
  };
  for (const auto& [name, value] : headers) {
    if (!is_hop_by_hop(name) && !is_named(name)) kept.add(name, value);
  }
  return kept;
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
