#include "proxy/discovery_params.hpp"

#include <array>
#include <string_view>

namespace balanceroute::proxy {

namespace {
constexpr std::array<std::string_view, 3> kSources{"static", "file", "dns"};
}

void DiscoveryParams::visit_params(ParamVisitor& visitor) {
  visitor.choice({"source",
                  "Where workers beside those in the list are found: static means nowhere, file in a file with a list "
                  "`workers` like this one's, dns behind every address of a name (a headless service)."},
                 source, kSources);
  visitor.text({"file", "The file that is looked at."}, file);
  visitor.text({"dns_name",
                "The name that is asked for, and the port of the workers, as host:port or"
                " https://host:port."},
               dns_name);
  visitor.real({"interval_ms", "Time between two looks."}, interval_ms, {10, 3'600'000});
}

}  // namespace balanceroute::proxy
