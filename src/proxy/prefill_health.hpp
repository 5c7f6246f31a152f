// prefill_health.hpp - which prefill instances can be reached, as probes and answers say.
//
// Leaves out instances that fail requests though they can be reached: prefill_book.hpp suspends them.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "proxy/dialects/dialect.hpp"
#include "proxy/endpoint_health.hpp"
#include "proxy/prefill_dispatcher.hpp"
#include "proxy/prober.hpp"

namespace spdlog {
class logger;
}

namespace balanceroute::proxy {

// PrefillHealth probes a fleet's prefill instances and takes those that cannot be reached from its dispatcher.
//   States   up until `unhealthy_after` probes in a row have failed, down until `healthy_after` have been answered. A
//   late
//            probe says nothing of an instance that has answered a request since the last one.
//   Threads  the deciding thread; stop() and the constructor are the owner's.
class PrefillHealth {
 public:
  // Probes run on `probing`, signed with `key`; `peers`, by PrefillId, outlive it.
  PrefillHealth(std::string fleet, const HealthParams& params, const std::vector<PrefillPeer>& peers,
                PrefillDispatcher& dispatcher, net::ClientOptions clients, const EngineKey& key, net::IoThread& decider,
                net::IoThread& probing, spdlog::logger& log);

  void set(const HealthParams& params);
  void stop() { prober_.stop(); }
  // By PrefillId.
  [[nodiscard]] std::vector<PrefillStatus> statuses() const;

 private:
  struct Instance {
    EndpointHealth health;
    std::uint64_t answers = 0;  // to requests, at the last probe
    std::string fault;
  };

  void probed(const net::Endpoint& endpoint, const ProbeAnswer& answer);
  void observe(PrefillId id, const ProbeAnswer& answer, bool lives);
  [[nodiscard]] bool has_answered(PrefillId id);

  std::string fleet_;
  const std::vector<PrefillPeer>& peers_;
  PrefillDispatcher& dispatcher_;
  net::IoThread& decider_;
  spdlog::logger& log_;
  std::vector<Instance> instances_;  // by PrefillId
  Prober prober_;
};

}  // namespace balanceroute::proxy
