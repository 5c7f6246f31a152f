#include "replay/request_text.hpp"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "core/random.hpp"

namespace balanceroute::replay {
namespace {

constexpr std::int64_t kBlockTokens = 512;
// Ids of three digits: known to every tokenizer, and no control tokens.
constexpr std::uint64_t kFirstId = 100;
constexpr std::uint64_t kIds = 900;

constexpr std::array<std::string_view, 64> kWords{
    "the", "and", "for", "are", "but", "not", "you", "all", "any", "can", "had", "her", "was", "one", "our", "out",
    "day", "get", "has", "him", "his", "how", "man", "new", "now", "old", "see", "two", "way", "who", "boy", "did",
    "its", "let", "put", "say", "she", "too", "use", "air", "end", "far", "few", "got", "law", "men", "own", "set",
    "six", "ten", "top", "war", "yes", "age", "art", "bad", "big", "box", "car", "cut", "eye", "run", "sea", "sun"};

void append_id(std::string& out, Random& random) {
  out += std::to_string(kFirstId + random.below(kIds));
  out += ',';
}

void append_word(std::string& out, Random& random) {
  out += kWords[random.below(kWords.size())];
  out += ' ';
}

// The tokens of the prompt: those of shared blocks first.
template <class Append>
void append_tokens(std::string& out, const RequestText& request, Append append) {
  const auto some = [&](std::uint64_t seed, std::int64_t count) {
    Random random{seed};
    for (std::int64_t i = 0; i < count; ++i) append(out, random);
  };
  std::int64_t left = request.prompt.count();
  for (const auto block : request.prefix_blocks) {
    const auto count = std::min(left, kBlockTokens);
    some(mix_bits(static_cast<std::uint64_t>(block)), count);
    left -= count;
  }
  some(request.seed, left);
}

void append_prompt(std::string& out, const RequestText& request) {
  if (request.route == Route::chat) {
    out += R"("messages":[{"role":"user","content":")";
    append_tokens(out, request, append_word);
    out += R"("}])";
    return;
  }
  out += R"("prompt":[)";
  append_tokens(out, request, append_id);
  out.back() = ']';
}

std::string length_members(const RequestText& request) {
  const auto output = std::to_string(request.output.count());
  switch (request.length_member) {
    case LengthMember::emulator:
      return R"(,"emulator":{"output_tokens":)" + output + "}";
    case LengthMember::exact:
      return R"(,"max_tokens":)" + output + R"(,"ignore_eos":true)";
    case LengthMember::limit:
      break;
  }
  return R"(,"max_tokens":)" + output;
}

}  // namespace

std::string_view path_of(Route route) {
  return route == Route::chat ? "/v1/chat/completions" : "/v1/completions";
}

std::string request_body(const RequestText& request) {
  std::string body = R"({"model":)" + nlohmann::json(request.model).dump() + ",";
  body.reserve(body.size() + 4 * static_cast<std::size_t>(request.prompt.count()) + 200);
  append_prompt(body, request);
  body += length_members(request);
  if (request.stream) body += R"(,"stream":true,"stream_options":{"include_usage":true})";
  return body + "}";
}

}  // namespace balanceroute::replay
