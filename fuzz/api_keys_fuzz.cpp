// api_keys_fuzz.cpp - any bytes are a file of clients' keys or a refusal; what is taken has names and hashes of its
// own.
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "proxy/api_keys.hpp"
#include "require.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace balanceroute::proxy;
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  const auto keys = ApiKeys::parse(text, "input");
  if (!keys) {
    require(!keys.error().empty());
    return 0;
  }
  require(keys->needed());
  std::set<std::string> names;
  for (const ApiKeyParams& key : keys->entries()) {
    require(names.insert(key.tenant.name).second);
    require(key.sha256.size() == 64);
  }
  require(changed_keys(*keys, *keys).empty());
  const ApiKeyParams* found = keys->find(text);
  require(found == nullptr || names.contains(found->tenant.name));
  return 0;
}
