#include "proxy/prompt_keys.hpp"

#include <vector>

namespace balanceroute::proxy {
namespace {

std::uint64_t key_of(const history::KeyedHash& hash, std::string_view model, const std::vector<Span>& parts,
                     std::string_view text) {
  if (parts.empty()) return 0;
  std::vector<std::string_view> hashed{model};
  for (const Span& part : parts) hashed.push_back(text.substr(part.offset, part.length));
  return hash.of(hashed);
}

}  // namespace

PromptKeys prompt_keys(const history::KeyedHash& hash, std::string_view model, const GenerationBody& body,
                       std::string_view text) {
  return {.prompt = key_of(hash, model, body.prompt_parts, text),
          .opening = key_of(hash, model, body.opening_parts, text)};
}

}  // namespace balanceroute::proxy
