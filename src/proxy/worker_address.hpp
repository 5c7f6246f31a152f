// worker_address.hpp - where a worker is, and how a request names it.
#pragma once

#include <cstdint>

#include "net/client.hpp"

namespace balanceroute::proxy {

// How a request says which rank it is for (engine-protocols 2): not at all, because the port is the rank's own; by the
// header X-data-parallel-rank; by the body's routed_dp_rank.
enum class RankNaming : std::uint8_t { Port, Header, Body };

struct WorkerAddress {
  net::Endpoint endpoint;
  std::int32_t rank = 0;  // among those behind the endpoint, which is how a request names it
  RankNaming naming = RankNaming::Port;
  std::int64_t engine_rank = 0;  // the engine's own number of it, as its metrics label it
};

}  // namespace balanceroute::proxy
