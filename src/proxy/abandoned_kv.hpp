// abandoned_kv.hpp - what is done about KV whose client has left: a prefill engine keeps it until somebody fetches it.
#pragma once

#include <boost/asio/awaitable.hpp>

#include "proxy/fleet.hpp"
#include "proxy/leg_pair.hpp"

namespace balanceroute::proxy {

// A prefilled request that nobody waits for, with its place in the pool.
struct AbandonedKv {
  Fleet& fleet;
  std::size_t thread_index;
  Placement placement;
  SharedClaim claim;
  net::HttpRequest request;  // with the client's body
  GenerationBody body;
  Handover handover;
  net::TimePoint deadline;
};

// Fetches the KV with a request for one token, once a worker has room for it.
net::asio::awaitable<void> drain(AbandonedKv abandoned);

}  // namespace balanceroute::proxy
