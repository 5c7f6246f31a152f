// http_fuzz.cpp - any bytes are a request or a refusal, the same whether they come at once or byte by byte.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

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

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes{reinterpret_cast<const char*>(data), size};
  const std::size_t head_end = net::find_head_end(bytes);
  if (head_end == std::string_view::npos) return 0;
  if (!net::check_request_head(bytes.substr(0, head_end))) return 0;
  // The server offers a head only when it is whole.
  const Outcome whole = read(bytes, bytes.size());
  const Outcome cut = read(bytes, 1);
  require(whole.refused || cut.refused || whole == cut);
  net::ResponseReader response{4096};
  (void)response.feed(bytes, [](std::string_view) {});
  return 0;
}
