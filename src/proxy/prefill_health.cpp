#include "proxy/prefill_health.hpp"

#include <spdlog/spdlog.h>

#include <utility>

namespace balanceroute::proxy {

namespace {

// What prefill engines say of themselves beside their health is nobody's business here.
HealthParams without_metrics(HealthParams params) {
  params.metrics = false;
  return params;
}

// It is taken for well until a probe fails.
EndpointHealth taken_for_well(const HealthParams& params) {
  EndpointHealth health{params};
  health.observe(Evidence::probe_answered, {});
  return health;
}

}  // namespace

PrefillHealth::PrefillHealth(std::string fleet, const HealthParams& params, const std::vector<PrefillPeer>& peers,
                             PrefillDispatcher& dispatcher, net::ClientOptions clients, const EngineKey& key,
                             net::IoThread& decider, net::IoThread& probing, spdlog::logger& log)
    : fleet_{std::move(fleet)},
      peers_{peers},
      dispatcher_{dispatcher},
      decider_{decider},
      log_{log},
      instances_(peers.size(), Instance{.health = taken_for_well(params), .fault = {}}),
      prober_{probing,
              without_metrics(params),
              std::move(clients),
              key,
              [](const net::Endpoint&) {},
              [this](const net::Endpoint& endpoint, ProbeAnswer answer) {
                decider_.dispatch([this, endpoint, answer = std::move(answer)] { probed(endpoint, answer); });
              },
              [&log](const std::exception_ptr&) { log.error("a probe of a prefill instance has failed"); }} {
  for (const PrefillPeer& peer : peers_) prober_.watch(peer.endpoint);
}

void PrefillHealth::set(const HealthParams& params) {
  for (Instance& instance : instances_) instance.health.set(params);
  prober_.set(without_metrics(params));
  for (const PrefillPeer& peer : peers_) prober_.watch(peer.endpoint);
}

// Ranks behind one address are judged by the same probe, and live together.
void PrefillHealth::probed(const net::Endpoint& endpoint, const ProbeAnswer& answer) {
  bool lives = false;
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].endpoint == endpoint && has_answered(PrefillId{i})) lives = true;
  }
  for (std::uint32_t i = 0; i < peers_.size(); ++i) {
    if (peers_[i].endpoint == endpoint) observe(PrefillId{i}, answer, lives);
  }
}

bool PrefillHealth::has_answered(PrefillId id) {
  const std::uint64_t answers = dispatcher_.counts(id).answers;
  return std::exchange(instances_[id.value()].answers, answers) != answers;
}

void PrefillHealth::observe(PrefillId id, const ProbeAnswer& answer, bool lives) {
  Instance& instance = instances_[id.value()];
  if (!answer.fault.empty()) instance.fault = answer.fault;
  if (!instance.health.observe(answer.evidence, decider_.now(), lives)) return;
  const bool up = instance.health.state() == HealthState::up;
  const PrefillPeer& peer = peers_[id.value()];
  log_.log(up ? spdlog::level::info : spdlog::level::warn,
           "prefill state={} fleet={} instance=http://{} rank={} reason=\"{}\"", to_string(instance.health.state()),
           fleet_, peer.endpoint.authority(), peer.rank, up ? "it answers" : instance.fault);
  dispatcher_.set_reachable(id, up);
}

std::vector<PrefillStatus> PrefillHealth::statuses() const {
  std::vector<PrefillStatus> out;
  for (const Instance& instance : instances_) out.push_back({instance.health.state(), instance.fault});
  return out;
}

}  // namespace balanceroute::proxy
