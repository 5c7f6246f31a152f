// http.hpp - HTTP/1.1 messages as plain values.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace balanceroute::net {

// HeaderList keeps header fields in order, as they were written. Names compare without case.
class HeaderList {
 public:
  void add(std::string name, std::string value) { fields_.emplace_back(std::move(name), std::move(value)); }
  // Replaces every field of that name.
  void set(std::string_view name, std::string value);
  void remove(std::string_view name);
  // The first field of that name.
  std::optional<std::string_view> find(std::string_view name) const;
  std::size_t count(std::string_view name) const;

  auto begin() const { return fields_.begin(); }
  auto end() const { return fields_.end(); }
  std::size_t size() const { return fields_.size(); }
  bool empty() const { return fields_.empty(); }

 private:
  std::vector<std::pair<std::string, std::string>> fields_;
};

bool iequals(std::string_view a, std::string_view b);

struct HttpRequest {
  std::string method = "GET";
  std::string target = "/";  // path and query as sent
  HeaderList headers;
  std::string body;
  bool http_1_0 = false;
  bool keep_alive = true;

  std::string_view path() const;   // the target without its query
  std::string_view query() const;  // after the question mark, empty when there is none
};

struct HttpResponse {
  int status = 200;
  HeaderList headers;  // without Content-Length, Transfer-Encoding and Connection, which the server writes
  std::string body;
};

// The reason phrase of RFC 9110 for a status, "Unknown" for others.
std::string_view reason_phrase(int status);

// The fields that concern more than one connection (RFC 9110, 7.6.1): without those that never do, and without those
// that a Connection field names.
HeaderList end_to_end(const HeaderList& headers);

HttpResponse json_response(int status, std::string body);
HttpResponse text_response(int status, std::string body);

}  // namespace balanceroute::net
