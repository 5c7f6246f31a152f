#include "proxy/state_report.hpp"

#include <algorithm>
#include <array>
#include <chrono>
#include <nlohmann/json.hpp>

#include "proxy/balance_report.hpp"
#include "proxy/fallback_report.hpp"
#include "telemetry/metrics.hpp"

namespace balanceroute::proxy {

namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using telemetry::add_sample;
using telemetry::Label;
using telemetry::make_family;

double number(Tokens tokens) {
  return static_cast<double>(tokens.count());
}

std::vector<Label> labels_of(const WorkerRecord& worker) {
  return {{"fleet", worker.key.fleet},
          {"group", worker.key.group},
          {"worker", worker.key.url},
          {"rank", std::to_string(worker.key.rank)}};
}

constexpr std::array<std::string_view, 5> kHealthLabels{"unseen", "up", "on_trial", "held", "down"};

std::string_view health_label(const MemberStatus& member) {
  return member.on_trial ? "on_trial" : to_string(member.health);
}

std::vector<MetricFamily> worker_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily load =
      make_family("balanceroute_worker_load_tokens", "Tokens the worker reads in one step.", MetricType::Gauge);
  MetricFamily margin = make_family("balanceroute_worker_margin_tokens",
                                    "Envelope of its group less the worker's load.", MetricType::Gauge);
  MetricFamily kv_free = make_family("balanceroute_worker_kv_free_tokens",
                                     "KV space that admissions may take, where it is limited.", MetricType::Gauge);
  MetricFamily slots =
      make_family("balanceroute_worker_slots_sequences", "Sequences the worker may decode at once.", MetricType::Gauge);
  MetricFamily in_flight = make_family("balanceroute_worker_in_flight_sequences",
                                       "Sequences the worker has been given and not ended.", MetricType::Gauge);
  MetricFamily queued = make_family("balanceroute_worker_queued_requests",
                                    "Requests bound to the worker that wait for a slot.", MetricType::Gauge);
  MetricFamily ready = make_family("balanceroute_worker_ready", "1 if the worker takes admissions.", MetricType::Gauge);
  MetricFamily state =
      make_family("balanceroute_worker_state", "1 for the state that the worker is in.", MetricType::Gauge);
  MetricFamily changes = make_family("balanceroute_worker_transitions_total",
                                     "How often the worker came into the state.", MetricType::Counter);
  MetricFamily incarnation = make_family("balanceroute_worker_incarnation",
                                         "Restarts of the engine that the router has seen.", MetricType::Gauge);
  MetricFamily health =
      make_family("balanceroute_worker_health", "1 for what probes and requests say of the worker.", MetricType::Gauge);
  MetricFamily holds = make_family("balanceroute_worker_holds_total",
                                   "How often the worker was held back for failing requests.", MetricType::Counter);
  MetricFamily rejections =
      make_family("balanceroute_worker_rank_rejections_total",
                  "Requests that the engine refused because it has no such rank.", MetricType::Counter);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const WorkerRecord& worker : fleet.workers) {
      if (worker.state == WorkerState::removed) continue;
      const std::vector<Label> labels = labels_of(worker);
      const MemberStatus& member = fleet.members[worker.id.value()];
      for (const std::string_view one : kHealthLabels) {
        std::vector<Label> with_health = labels;
        with_health.push_back({"health", std::string{one}});
        add_sample(health, with_health, health_label(member) == one ? 1 : 0);
      }
      add_sample(holds, labels, static_cast<double>(member.times_held));
      add_sample(rejections, labels, static_cast<double>(member.rank_rejections));
      add_sample(load, labels, number(worker.load));
      add_sample(margin, labels, number(fleet.groups[worker.group.value()].envelope - worker.load));
      if (worker.kv_free < kUnlimitedKv) add_sample(kv_free, labels, number(worker.kv_free));
      add_sample(slots, labels, worker.slots.decoding);
      add_sample(in_flight, labels, worker.sequences);
      add_sample(queued, labels, static_cast<double>(fleet.queued[worker.id.value()]));
      add_sample(ready, labels, worker.eligible ? 1 : 0);
      add_sample(incarnation, labels, worker.incarnation);
      for (std::size_t s = 0; s < kWorkerStates; ++s) {
        const auto one = static_cast<WorkerState>(s);
        std::vector<Label> with_state = labels;
        with_state.push_back({"state", std::string{to_string(one)}});
        add_sample(state, with_state, worker.state == one ? 1 : 0);
        add_sample(changes, with_state, static_cast<double>(fleet.members[worker.id.value()].became[s]));
      }
    }
  }
  return {load,  margin,  kv_free,     slots,  in_flight, queued,    ready,
          state, changes, incarnation, health, holds,     rejections};
}

// What engines say of their ranks, and how that fits the ledger.
std::vector<MetricFamily> engine_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily running = make_family("balanceroute_engine_running_sequences", "Sequences that the engine says it runs.",
                                     MetricType::Gauge);
  MetricFamily waiting = make_family("balanceroute_engine_waiting_sequences",
                                     "Sequences that the engine says wait inside it.", MetricType::Gauge);
  MetricFamily usage =
      make_family("balanceroute_engine_kv_usage_ratio", "KV cache in use as the engine says.", MetricType::Gauge);
  MetricFamily background =
      make_family("balanceroute_engine_background_sequences",
                  "Sequences that reached the engine around the router and are counted as load.", MetricType::Gauge);
  MetricFamily disagreements =
      make_family("balanceroute_engine_disagreements_total",
                  "Readings of the engine that did not fit the router's account of it.", MetricType::Counter);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const WorkerRecord& worker : fleet.workers) {
      const MemberStatus& member = fleet.members[worker.id.value()];
      if (worker.state == WorkerState::removed || !member.engine) continue;
      const std::vector<Label> labels = labels_of(worker);
      if (member.engine->running) add_sample(running, labels, static_cast<double>(*member.engine->running));
      if (member.engine->waiting) add_sample(waiting, labels, static_cast<double>(*member.engine->waiting));
      if (member.engine->kv_usage) add_sample(usage, labels, *member.engine->kv_usage);
      add_sample(background, labels, static_cast<double>(member.background));
      add_sample(disagreements, labels, static_cast<double>(member.disagreements));
    }
  }
  return {running, waiting, usage, background, disagreements};
}

std::vector<MetricFamily> group_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily envelope =
      make_family("balanceroute_group_envelope_tokens", "Largest worker load of the group.", MetricType::Gauge);
  MetricFamily spread =
      make_family("balanceroute_group_spread_tokens", "Largest less smallest worker load.", MetricType::Gauge);
  MetricFamily imbalance = make_family("balanceroute_group_imbalance_tokens",
                                       "Workers times the largest load, less the sum of loads.", MetricType::Gauge);
  MetricFamily steps = make_family("balanceroute_group_steps_total",
                                   "Decode steps that the group's streams have shown.", MetricType::Counter);
  MetricFamily step_time = make_family("balanceroute_group_step_seconds",
                                       "Smoothed time of one decode step; 0 before the first.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const FleetSnapshot::Group& group : fleet.groups) {
      const std::vector<Label> labels{{"fleet", fleet.fleet}, {"group", group.name}};
      add_sample(envelope, labels, number(group.envelope));
      add_sample(spread, labels, number(group.spread));
      add_sample(imbalance, labels, number(group.imbalance));
      add_sample(steps, labels, static_cast<double>(group.steps.count()));
      add_sample(step_time, labels, group.measures.step_seconds);
    }
  }
  return {envelope, spread, imbalance, steps, step_time};
}

std::vector<MetricFamily> fleet_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily waiting =
      make_family("balanceroute_pool_depth_requests", "Requests that wait for a worker.", MetricType::Gauge);
  MetricFamily rounds = make_family("balanceroute_decision_rounds_total", "Decision rounds.", MetricType::Counter);
  MetricFamily policy = make_family("balanceroute_policy_info", "1 for the policy that decides.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    const std::vector<Label> labels{{"fleet", fleet.fleet}};
    add_sample(waiting, labels, static_cast<double>(fleet.waiting));
    add_sample(rounds, labels, static_cast<double>(fleet.rounds));
    add_sample(policy, {{"fleet", fleet.fleet}, {"policy", fleet.policy}}, 1);
  }
  return {waiting, rounds, policy};
}

std::vector<MetricFamily> certificate_families(const ServiceContext& service) {
  MetricFamily expires = make_family(
      "balanceroute_tls_certificate_expires_seconds",
      "Time until the certificate of a listener or for a fleet ends; negative after that.", MetricType::Gauge);
  const auto now = std::chrono::system_clock::now();
  for (const CertificateEnd& one : service.params.current().certificates) {
    add_sample(expires, {{"of", one.owner}}, std::chrono::duration<double>{one.expires - now}.count());
  }
  return {expires};
}

std::vector<MetricFamily> tenant_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily active = make_family("balanceroute_tenant_active_sequences",
                                    "Sequences of the tenant on workers and next to be placed.", MetricType::Gauge);
  MetricFamily parked = make_family("balanceroute_tenant_parked_requests",
                                    "Requests of the tenant that wait for room in its quota.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const FleetSnapshot::Tenant& tenant : fleet.tenants) {
      const std::vector<Label> labels{{"fleet", fleet.fleet}, {"tenant", tenant.name}};
      add_sample(active, labels, static_cast<double>(tenant.standing.active));
      add_sample(parked, labels, static_cast<double>(tenant.standing.parked));
    }
  }
  return {active, parked};
}

std::vector<MetricFamily> prefill_families(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily computing = make_family("balanceroute_prefill_computing_tokens",
                                       "Prompt tokens that the instance was given to compute.", MetricType::Gauge);
  MetricFamily held = make_family("balanceroute_prefill_held_tokens",
                                  "Prompt tokens whose KV the instance holds for requests.", MetricType::Gauge);
  MetricFamily stranded =
      make_family("balanceroute_prefill_stranded_tokens",
                  "Prompt tokens whose KV the instance holds for nobody, until its lease ends.", MetricType::Gauge);
  MetricFamily ready =
      make_family("balanceroute_prefill_ready", "0 while an instance that fails or cannot be reached is left alone.",
                  MetricType::Gauge);
  MetricFamily waiting = make_family("balanceroute_arrival_queue_depth_requests",
                                     "Requests that wait for a prefill instance.", MetricType::Gauge);
  MetricFamily in_flight = make_family("balanceroute_prefill_in_flight_requests",
                                       "Requests that prefill instances compute.", MetricType::Gauge);
  MetricFamily target =
      make_family("balanceroute_pool_target_requests",
                  "Prefilled requests, with those in flight, that the pool has use for.", MetricType::Gauge);
  MetricFamily forced =
      make_family("balanceroute_pool_forced_holds_total",
                  "Requests sent beyond a worker's slots because their KV could wait no longer.", MetricType::Counter);
  MetricFamily expired =
      make_family("balanceroute_pool_holds_expired_total",
                  "Requests whose KV could wait no longer and found no worker.", MetricType::Counter);
  for (std::size_t f = 0; f < snapshots.size(); ++f) {
    if (!snapshots[f].prefill) continue;
    const PrefillSnapshot& prefill = *snapshots[f].prefill;
    const std::vector<Label> labels{{"fleet", snapshots[f].fleet}};
    for (std::size_t i = 0; i < prefill.instances.size(); ++i) {
      const PrefillCounts& counts = prefill.instances[i];
      const PrefillPeer& peer = service.fleets[f]->prefill_peers()[i];
      const std::vector<Label> instance{
          {"fleet", snapshots[f].fleet}, {"instance", peer.endpoint.url()}, {"rank", std::to_string(peer.rank)}};
      add_sample(computing, instance, number(counts.computing));
      add_sample(held, instance, number(counts.held));
      add_sample(stranded, instance, number(counts.stranded));
      add_sample(ready, instance, counts.reachable && counts.suspended_until <= service.clock.now() ? 1 : 0);
    }
    add_sample(waiting, labels, static_cast<double>(prefill.waiting));
    add_sample(in_flight, labels, static_cast<double>(prefill.in_flight));
    add_sample(target, labels, static_cast<double>(prefill.pool_target));
    add_sample(forced, labels, static_cast<double>(snapshots[f].forced_holds));
    add_sample(expired, labels, static_cast<double>(snapshots[f].holds_expired));
  }
  return {computing, held, stranded, ready, waiting, in_flight, target, forced, expired};
}

nlohmann::ordered_json prefill_json(const FleetSnapshot& fleet, const std::vector<PrefillPeer>& peers) {
  const PrefillSnapshot& prefill = *fleet.prefill;
  nlohmann::ordered_json instances = nlohmann::ordered_json::array();
  for (std::size_t i = 0; i < prefill.instances.size(); ++i) {
    const PrefillCounts& counts = prefill.instances[i];
    instances.push_back({{"url", peers[i].endpoint.url()},
                         {"rank", peers[i].rank},
                         {"leases_live", counts.requests},
                         {"computing_tokens", counts.computing.count()},
                         {"held_tokens", counts.held.count()},
                         {"stranded_tokens", counts.stranded.count()},
                         {"failures_in_a_row", counts.failures},
                         {"health", std::string{to_string(fleet.prefill_health[i].health)}},
                         {"last_fault", fleet.prefill_health[i].fault}});
  }
  nlohmann::ordered_json leases = nlohmann::ordered_json::array();
  for (const PrefillLeaseRecord& lease : prefill.leases) {
    leases.push_back({{"request", lease.request.value()},
                      {"instance", lease.instance.value()},
                      {"state", lease.holds_kv ? "held" : "computing"},
                      {"tokens", lease.tokens.count()}});
  }
  return {{"requests_live", prefill.live},
          {"requests_waiting", prefill.waiting},
          {"in_flight", prefill.in_flight},
          {"pool_target", prefill.pool_target},
          {"prefill_ms", prefill.prefill_seconds * 1000},
          {"instances", std::move(instances)},
          {"leases", std::move(leases)}};
}

// What the engine says of itself, beside what the ledger says.
nlohmann::ordered_json engine_json(const MemberStatus& member) {
  nlohmann::ordered_json engine;
  if (!member.engine) return engine;
  if (member.engine->running) engine["running"] = *member.engine->running;
  if (member.engine->waiting) engine["waiting"] = *member.engine->waiting;
  if (member.engine->kv_usage) engine["kv_usage"] = *member.engine->kv_usage;
  return engine;
}

nlohmann::ordered_json worker_json(const WorkerRecord& worker, const FleetSnapshot& fleet) {
  const MemberStatus& member = fleet.members[worker.id.value()];
  return {{"id", worker.id.value()},
          {"fleet", fleet.fleet},
          {"group", worker.key.group},
          {"url", worker.key.url},
          {"rank", worker.key.rank},
          {"state", std::string{to_string(worker.state)}},
          {"incarnation", worker.incarnation},
          {"slots", worker.slots.decoding},
          {"slots_ahead", worker.slots.ahead},
          {"sequences", worker.sequences},
          {"load_tokens", worker.load.count()},
          {"queued_requests", fleet.queued[worker.id.value()]},
          {"takes_requests", worker.eligible},
          {"health", std::string{to_string(member.health)}},
          {"on_trial", member.on_trial},
          {"times_held", member.times_held},
          {"rank_rejections", member.rank_rejections},
          {"drain_asked", member.drain_asked},
          {"removing", member.removing},
          {"last_fault", member.fault},
          {"engine", engine_json(member)},
          {"background_sequences", member.background},
          {"disagreements", member.disagreements}};
}

nlohmann::ordered_json score_json(const WorkerKey& key, const WorkerScore& score) {
  return {{"group", key.group},
          {"url", key.url},
          {"rank", key.rank},
          {"eligible", score.eligible},
          {"free_slots", score.free_slots},
          {"load_tokens", score.load.count()},
          {"margin_tokens", score.margin.count()},
          {"score", score.score}};
}

nlohmann::ordered_json tenant_json(const FleetSnapshot::Tenant& tenant) {
  nlohmann::ordered_json body{{"name", tenant.name},
                              {"weight", tenant.standing.terms.weight},
                              {"max_sequences", nullptr},
                              {"active_sequences", tenant.standing.active},
                              {"parked_requests", tenant.standing.parked}};
  if (tenant.standing.terms.quota != TenantTerms::kNoQuota) body["max_sequences"] = tenant.standing.terms.quota;
  return body;
}

nlohmann::ordered_json lease_json(const LeaseRecord& lease) {
  return {{"request", lease.request.id.value()},          {"worker", lease.worker.value()},
          {"state", std::string{to_string(lease.state)}}, {"sequences", lease.request.sequences},
          {"generated_tokens", lease.generated.count()},  {"weight_tokens", lease.weight.count()}};
}

std::vector<MetricFamily> span_families(const ServiceContext& service) {
  MetricFamily spans = make_family("balanceroute_trace_spans_total",
                                   "Spans of requests that were to be sent to the collector.", MetricType::Counter);
  const SpanExporter::Counts counts = service.spans.counts();
  add_sample(spans, {{"outcome", "sent"}}, static_cast<double>(counts.sent));
  add_sample(spans, {{"outcome", "dropped"}}, static_cast<double>(counts.dropped));
  return {std::move(spans)};
}

}  // namespace

net::HttpResponse metrics_response(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots) {
  std::vector<MetricFamily> families = worker_families(snapshots);
  for (auto& more : {engine_families(snapshots), group_families(snapshots), balance_families(snapshots),
                     fleet_families(snapshots), decision_families(snapshots), fallback_families(snapshots),
                     shadow_families(snapshots), tenant_families(snapshots), prefill_families(service, snapshots),
                     certificate_families(service), span_families(service), service.history.families()}) {
    families.insert(families.end(), more.begin(), more.end());
  }
  net::HttpResponse response{.status = 200, .headers = {}, .body = service.metrics.exposition(std::move(families))};
  response.headers.add("Content-Type", "text/plain; version=0.0.4; charset=utf-8");
  return response;
}

net::HttpResponse ledger_response(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots) {
  nlohmann::ordered_json body;
  body["fleets"] = nlohmann::ordered_json::array();
  for (std::size_t f = 0; f < snapshots.size(); ++f) {
    const FleetSnapshot& snapshot = snapshots[f];
    nlohmann::ordered_json fleet;
    fleet["name"] = snapshot.fleet;
    fleet["policy"] = snapshot.policy;
    fleet["requests_live"] = service.fleets[f]->dispatcher().live();
    fleet["requests_waiting"] = snapshot.waiting;
    fleet["leases_live"] = snapshot.leases.size();
    fleet["workers"] = nlohmann::ordered_json::array();
    for (const WorkerRecord& worker : snapshot.workers) {
      if (worker.state == WorkerState::removed) continue;
      fleet["workers"].push_back(worker_json(worker, snapshot));
      fleet["workers"].back()["engine_rank"] = service.fleets[f]->address(worker.id).engine_rank;
    }
    fleet["tenants"] = nlohmann::ordered_json::array();
    for (const FleetSnapshot::Tenant& tenant : snapshot.tenants) fleet["tenants"].push_back(tenant_json(tenant));
    fleet["leases"] = nlohmann::ordered_json::array();
    for (const LeaseRecord& lease : snapshot.leases) fleet["leases"].push_back(lease_json(lease));
    if (snapshot.prefill) fleet["prefill"] = prefill_json(snapshot, service.fleets[f]->prefill_peers());
    body["fleets"].push_back(std::move(fleet));
  }
  return net::json_response(200, body.dump(2));
}

net::HttpResponse workers_response(int status, const std::vector<FleetSnapshot>& snapshots,
                                   const std::optional<std::vector<WorkerId>>& only) {
  nlohmann::ordered_json body;
  body["workers"] = nlohmann::ordered_json::array();
  for (const FleetSnapshot& snapshot : snapshots) {
    for (const WorkerRecord& worker : snapshot.workers) {
      const bool listed =
          only ? std::ranges::find(*only, worker.id) != only->end() : worker.state != WorkerState::removed;
      if (listed) body["workers"].push_back(worker_json(worker, snapshot));
    }
  }
  return net::json_response(status, body.dump(2));
}

net::HttpResponse explain_response(const std::vector<FleetExplanation>& explanations) {
  nlohmann::ordered_json body;
  body["fleets"] = nlohmann::ordered_json::array();
  for (const FleetExplanation& explanation : explanations) {
    nlohmann::ordered_json fleet;
    fleet["name"] = explanation.fleet;
    fleet["policy"] = explanation.policy;
    fleet["score_meaning"] = explanation.score_meaning;
    fleet["workers"] = nlohmann::ordered_json::array();
    for (const auto& [key, score] : explanation.workers) fleet["workers"].push_back(score_json(key, score));
    body["fleets"].push_back(std::move(fleet));
  }
  return net::json_response(200, body.dump(2));
}

}  // namespace balanceroute::proxy
