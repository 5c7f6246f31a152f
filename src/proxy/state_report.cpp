#include "proxy/state_report.hpp"

#include <nlohmann/json.hpp>

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

std::vector<MetricFamily> worker_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily load =
      make_family("balanceroute_worker_load_tokens", "Tokens the worker reads in one step.", MetricType::Gauge);
  MetricFamily slots =
      make_family("balanceroute_worker_slots_sequences", "Sequences the worker may decode at once.", MetricType::Gauge);
  MetricFamily in_flight = make_family("balanceroute_worker_in_flight_sequences",
                                       "Sequences the worker has been given and not ended.", MetricType::Gauge);
  MetricFamily queued = make_family("balanceroute_worker_queued_requests",
                                    "Requests bound to the worker that wait for a slot.", MetricType::Gauge);
  MetricFamily ready = make_family("balanceroute_worker_ready", "1 if the worker takes admissions.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const WorkerRecord& worker : fleet.workers) {
      const std::vector<Label> labels{{"fleet", fleet.fleet},
                                      {"group", worker.key.group},
                                      {"worker", worker.key.url},
                                      {"rank", std::to_string(worker.key.rank)}};
      add_sample(load, labels, number(worker.load));
      add_sample(slots, labels, worker.slots);
      add_sample(in_flight, labels, worker.sequences);
      add_sample(queued, labels, static_cast<double>(fleet.queued[worker.id.value()]));
      add_sample(ready, labels, worker.eligible ? 1 : 0);
    }
  }
  return {load, slots, in_flight, queued, ready};
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
      add_sample(step_time, labels, group.step_ms / 1000);
    }
  }
  return {envelope, spread, imbalance, steps, step_time};
}

std::vector<MetricFamily> fleet_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily waiting =
      make_family("balanceroute_pool_depth_requests", "Requests that wait for a worker.", MetricType::Gauge);
  MetricFamily rounds = make_family("balanceroute_decision_rounds_total", "Decision rounds.", MetricType::Counter);
  MetricFamily admissions =
      make_family("balanceroute_decision_admissions_total", "Requests given to a worker.", MetricType::Counter);
  MetricFamily policy = make_family("balanceroute_policy_info", "1 for the policy that decides.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    const std::vector<Label> labels{{"fleet", fleet.fleet}};
    add_sample(waiting, labels, static_cast<double>(fleet.waiting));
    add_sample(rounds, labels, static_cast<double>(fleet.rounds));
    add_sample(admissions, labels, static_cast<double>(fleet.admissions));
    add_sample(policy, {{"fleet", fleet.fleet}, {"policy", fleet.policy}}, 1);
  }
  return {waiting, rounds, admissions, policy};
}

nlohmann::ordered_json worker_json(const WorkerRecord& worker, const FleetSnapshot& fleet) {
  return {{"id", worker.id.value()},
          {"group", worker.key.group},
          {"url", worker.key.url},
          {"rank", worker.key.rank},
          {"state", std::string{to_string(worker.state)}},
          {"incarnation", worker.incarnation},
          {"slots", worker.slots},
          {"sequences", worker.sequences},
          {"load_tokens", worker.load.count()},
          {"queued_requests", fleet.queued[worker.id.value()]}};
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

nlohmann::ordered_json lease_json(const LeaseRecord& lease) {
  return {{"request", lease.request.value()},
          {"worker", lease.worker.value()},
          {"state", std::string{to_string(lease.state)}},
          {"sequences", lease.sequences},
          {"generated_tokens", lease.generated.count()},
          {"weight_tokens", lease.weight.count()}};
}

}  // namespace

net::HttpResponse metrics_response(const ServiceContext& service, const std::vector<FleetSnapshot>& snapshots) {
  std::vector<MetricFamily> families = worker_families(snapshots);
  for (auto& more : {group_families(snapshots), fleet_families(snapshots)}) {
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
    for (const WorkerRecord& worker : snapshot.workers) fleet["workers"].push_back(worker_json(worker, snapshot));
    fleet["leases"] = nlohmann::ordered_json::array();
    for (const LeaseRecord& lease : snapshot.leases) fleet["leases"].push_back(lease_json(lease));
    body["fleets"].push_back(std::move(fleet));
  }
  return net::json_response(200, body.dump(2));
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
