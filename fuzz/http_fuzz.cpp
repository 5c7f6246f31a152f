// http_fuzz.cpp - any bytes are a request or a refusal, the same whether they come at once or byte by byte; a head that
// passes the check says one thing about its body, to Beast and to whoever reads it line by line.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "net/head_check.hpp"
#include "net/http_reader.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

struct Outcome {
  bool refused = false;
  bool done = false;
  std::string body;
  std::string target;
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome read(std::string_view bytes, std::size_t piece) {
  net::RequestReader reader{{.head_bytes = 4096, .body_bytes = 4096}};
  Outcome outcome;
  std::string waiting;
  for (std::size_t at = 0; at < bytes.size() && !reader.done(); at += piece) {
    waiting.append(bytes.substr(at, piece));
    const auto used = reader.feed(waiting);
    if (!used) return {.refused = true};
    require(*used <= waiting.size());
    waiting.erase(0, *used);
  }
  outcome.done = reader.done();
  if (outcome.done) {
    outcome.body = reader.request().body;
    outcome.target = reader.request().target;
  }
  return outcome;
}

// The values of a field, read as a simple server would: by line, name up to the colon.
std::vector<std::string> values_of(std::string_view head, std::string_view name) {
  std::vector<std::string> values;
  for (std::size_t at = head.find('\n'); at != std::string_view::npos; at = head.find('\n', at + 1)) {
    std::string line{head.substr(at + 1, head.find('\n', at + 1) - at - 1)};
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::string found = line.substr(0, colon);
    std::ranges::transform(found, found.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
    std::erase_if(found, [](unsigned char c) { return std::isspace(c) || c == 0; });
    if (found == name) values.push_back(line.substr(colon + 1));
  }
  return values;
}

void check_agreement(std::string_view head) {
  const bool has_length = !values_of(head, "content-length").empty();
  const bool has_coding = !values_of(head, "transfer-encoding").empty();
  require(values_of(head, "content-length").size() <= 1);
  require(values_of(head, "transfer-encoding").size() <= 1);
  require(values_of(head, "host").size() <= 1);
  require(!(has_length && has_coding));
  require(head.find('\0') == std::string_view::npos);
  net::RequestReader reader{{.head_bytes = head.size(), .body_bytes = static_cast<std::uint64_t>(-1)}};
  const auto used = reader.feed(head);
  require(used.has_value());  // Beast takes what the check lets pass
  require(*used == head.size());
  const bool empty = has_length && std::stoull(values_of(head, "content-length").front()) == 0;
  require(reader.done() == (!has_coding && (!has_length || empty)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  net::ResponseReader response{4096};
  (void)response.feed(bytes, [](std::string_view) {});
  const std::size_t head_end = net::find_head_end(bytes);
  if (head_end == std::string_view::npos) return 0;
  const std::string_view head = bytes.substr(0, head_end);
  if (!net::check_request_head(head, 64)) return 0;
  require(net::check_beginning(head).has_value());
  check_agreement(head);
  require(read(bytes, bytes.size()) == read(bytes, 1));
  return 0;
}
