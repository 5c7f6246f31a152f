// config_fuzz.cpp - any bytes are a configuration of the router or a refusal; what is taken can be shown and read
// again.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "config/show.hpp"
#include "config/yaml_reader.hpp"
#include "core/param_check.hpp"
#include "proxy/serve_params.hpp"
#include "require.hpp"

namespace {

using namespace balanceroute;

void check(const proxy::ServeParams& params) {
  require(!first_fault(params));
  const std::string shown = to_yaml(params, {});
  proxy::ServeParams again;
  require(read_yaml(shown, "shown", again).has_value());
  require(to_yaml(again, {}) == shown);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text{reinterpret_cast<const char*>(data), size};
  proxy::ServeParams params;
  const auto read = read_yaml(text, "input", params);
  if (read) {
    check(params);
  } else {
    require(!read.error().problems.empty());
  }
  return 0;
}
