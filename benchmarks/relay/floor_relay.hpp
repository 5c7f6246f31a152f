// floor_relay.hpp - the least a relay can do: bytes of each client to an engine and back, one thread, no parsing.
#pragma once

#include <cstdint>
#include <vector>

namespace balanceroute::relay_bench {

// Relays connections to `port` of this process's own listener, dealt round robin over the engines' ports, until the
// process is ended. Tells its port through `told` (a pipe's end), as text.
[[noreturn]] void run_floor_relay(int told, const std::vector<std::uint16_t>& engines);

}  // namespace balanceroute::relay_bench
