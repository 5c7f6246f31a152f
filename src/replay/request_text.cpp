#include "replay/request_text.hpp"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/random.hpp"

namespace balanceroute::replay {
namespace {

constexpr std::int64_t kBlockTokens = 512;
// Ids of three digits: known to every tokenizer, and no control tokens.
constexpr std::uint64_t kFirstId = 100;
constexpr std::uint64_t kIds = 900;

void append_ids(std::string& out, std::uint64_t seed, std::int64_t count) {
  Random random{seed};
  for (std::int64_t i = 0; i < count; ++i) {
    out += std::to_string(kFirstId + random.below(kIds));
    out += ',';
  }
}

void append_prompt(std::string& out, const RequestText& request) {
  std::int64_t left = request.prompt.count();
  out += '[';
  for (const auto block : request.prefix_blocks) {
    const auto count = std::min(left, kBlockTokens);
    append_ids(out, mix_bits(static_cast<std::uint64_t>(block)), count);
    left -= count;
  }
  append_ids(out, request.seed, left);
  out.back() = ']';
}

}  // namespace

std::string request_body(const RequestText& request) {
  const auto output = std::to_string(request.output.count());
  std::string body = R"({"model":)" + nlohmann::json(request.model).dump() + R"(,"prompt":)";
  body.reserve(body.size() + 4 * static_cast<std::size_t>(request.prompt.count()) + 160);
  append_prompt(body, request);
  if (request.length_member == LengthMember::emulator) {
    body += R"(,"emulator":{"output_tokens":)" + output + "}";
  } else {
    body += R"(,"max_tokens":)" + output + R"(,"ignore_eos":true)";
  }
  if (request.stream) body += R"(,"stream":true,"stream_options":{"include_usage":true})";
  return body + "}";
}

}  // namespace balanceroute::replay
