#include "proxy/live_view.hpp"

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/envelope.hpp"
#include "proxy/live_settings.hpp"

namespace balanceroute::proxy {

namespace {

using nlohmann::json;

// Workers of a group whose loads are remembered one by one; more lines than that nobody can tell apart.
constexpr std::size_t kLines = 32;

// Digits that nobody reads are not sent.
double rounded(double value, double digits) {
  const double scale = std::pow(10, digits);
  return std::round(value * scale) / scale;
}

json limited(Tokens tokens, bool is_limited) {
  return is_limited ? json(tokens.count()) : json(nullptr);
}

template <class Number>
json known(const std::optional<Number>& number) {
  return number ? json(*number) : json(nullptr);
}

json summary_json(const Summary& summary, double scale, double digits) {
  if (summary.count == 0) return {{"count", 0}};
  return {{"count", summary.count},
          {"mean", rounded(summary.mean * scale, digits)},
          {"p50", rounded(summary.p50 * scale, digits)},
          {"p95", rounded(summary.p95 * scale, digits)},
          {"p99", rounded(summary.p99 * scale, digits)},
          {"max", rounded(summary.max * scale, digits)}};
}

json worker_json(const WorkerRecord& worker, const MemberStatus& member) {
  return {{"group", std::to_string(worker.group.value())},
          {"url", worker.key.url},
          {"rank", worker.key.rank},
          {"state", to_string(worker.state)},
          {"takes_requests", worker.eligible},
          {"health", to_string(member.health)},
          {"on_trial", member.on_trial},
          {"drain_asked", member.drain_asked},
          {"removing", member.removing},
          {"last_fault", member.fault},
          {"incarnation", worker.incarnation},
          {"slots", worker.slots.decoding},
          {"slots_ahead", worker.slots.ahead},
          {"background_sequences", member.background},
          {"disagreements", member.disagreements}};
}

json group_json(const FleetSnapshot::Group& group, Tokens kv_capacity) {
  const GroupMeasures& measures = group.measures;
  json body{{"name", group.name},
            {"steps", group.steps.count()},
            {"step_ms", rounded(measures.step_seconds * 1000, 3)},
            {"envelope_tokens", group.envelope.count()},
            {"spread_tokens", group.spread.count()},
            {"imbalance_tokens", group.imbalance.count()},
            {"load_idle_fraction", rounded(measures.load_idle_fraction, 4)},
            {"barrier_idle_fraction", rounded(measures.barrier_idle_fraction, 4)},
            {"token_price", measures.source == PriceSource::measured ? "measured" : "modelled"},
            {"step_fixed_ms", rounded(measures.fixed_ms, 3)},
            {"step_per_token_ms", measures.per_token_ms}};
  if (kv_capacity < kUnlimitedKv) body["kv_capacity_tokens"] = kv_capacity.count();
  for (const char* column : {"workers", "load_tokens", "sequences", "queued_requests", "kv_free_tokens",
                             "engine_running", "engine_waiting", "engine_kv_usage"}) {
    body[column] = json::array();
  }
  return body;
}

void add_to_columns(json& group, const WorkerRecord& worker, const FleetSnapshot& fleet) {
  const std::optional<RankReading>& engine = fleet.members[worker.id.value()].engine;
  group["workers"].push_back(worker.id.value());
  group["load_tokens"].push_back(worker.load.count());
  group["sequences"].push_back(worker.sequences);
  group["queued_requests"].push_back(fleet.queued[worker.id.value()]);
  group["kv_free_tokens"].push_back(limited(worker.kv_free, worker.kv_free < kUnlimitedKv));
  group["engine_running"].push_back(engine ? known(engine->running) : json(nullptr));
  group["engine_waiting"].push_back(engine ? known(engine->waiting) : json(nullptr));
  group["engine_kv_usage"].push_back(engine ? known(engine->kv_usage) : json(nullptr));
}

json prefill_json(const PrefillSnapshot& prefill, const Fleet& fleet, net::TimePoint now) {
  json instances = json::object();
  for (std::size_t i = 0; i < prefill.instances.size(); ++i) {
    const PrefillCounts& counts = prefill.instances[i];
    const PrefillPeer& peer = fleet.prefill_peers()[i];
    instances[std::to_string(i)] = {
        {"url", "http://" + peer.endpoint.authority()}, {"rank", peer.rank},
        {"computing_tokens", counts.computing.count()}, {"held_tokens", counts.held.count()},
        {"stranded_tokens", counts.stranded.count()},   {"requests", counts.requests},
        {"ready", counts.suspended_until <= now}};
  }
  return {{"waiting_requests", prefill.waiting},
          {"in_flight_requests", prefill.in_flight},
          {"pool_target_requests", prefill.pool_target},
          {"prefill_ms", rounded(prefill.prefill_seconds * 1000, 1)},
          {"instances", std::move(instances)}};
}

json predictor_json(const PredictorStanding& predictor) {
  return {{"name", predictor.name},
          {"horizon_steps", predictor.horizon_steps},
          {"predictions", predictor.predictions},
          {"mean_predicted", rounded(predictor.mean_predicted, 4)},
          {"mean_happened", rounded(predictor.mean_happened, 4)},
          {"brier_score", rounded(predictor.brier_score, 5)},
          {"brier_reference", rounded(predictor.brier_reference, 5)}};
}

json world_json(const ShadowReport& shadow) {
  json groups = json::object();
  for (std::size_t g = 0; g < shadow.world.size(); ++g) {
    const ShadowReport::Group& group = shadow.world[g];
    groups[std::to_string(g)] = {{"load_idle_fraction", rounded(group.there.load_idle_fraction(), 4)},
                                 {"live_load_idle_fraction", rounded(group.here.load_idle_fraction(), 4)},
                                 {"imbalance_tokens", group.imbalance.count()}};
  }
  return {{"mode", "world"},
          {"waiting_requests", shadow.waiting},
          {"left_out", shadow.left_out},
          {"groups", std::move(groups)}};
}

json shadow_json(const ShadowReport& shadow) {
  json body = shadow.step ? json{{"mode", "step"},
                                 {"rounds", shadow.step->rounds},
                                 {"worse_rounds", shadow.step->worse},
                                 {"regret_tokens", shadow.step->regret.count()}}
                          : world_json(shadow);
  body["policy"] = shadow.policy;
  if (!shadow.stopped.empty()) body["stopped"] = shadow.stopped;
  return body;
}

void add_shadow(LiveHistory::Row& row, const FleetSnapshot& state) {
  if (!state.shadow) return;
  if (state.shadow->step) {
    row.emplace_back(state.fleet + "/regret_tokens", static_cast<double>(state.shadow->step->regret.count()));
  }
  for (std::size_t g = 0; g < state.shadow->world.size(); ++g) {
    const ShadowReport::Group& group = state.shadow->world[g];
    const std::string name = state.fleet + "/" + std::to_string(g) + "/";
    row.emplace_back(name + "live_load_idle", rounded(group.here.load_idle_fraction(), 4));
    row.emplace_back(name + "shadow_load_idle", rounded(group.there.load_idle_fraction(), 4));
    row.emplace_back(name + "imbalance", static_cast<double>(state.groups[g].imbalance.count()));
    row.emplace_back(name + "shadow_imbalance", static_cast<double>(group.imbalance.count()));
  }
}

json fleet_json(const ServiceContext& service, const Fleet& fleet, const FleetLook& look) {
  const FleetSnapshot& state = look.state;
  json body{{"policy", state.policy},
            {"score_meaning", state.score_meaning},
            {"dialect", fleet.params().dialect},
            {"barrier", fleet.params().barrier},
            {"waiting_requests", state.waiting},
            {"rounds", state.rounds},
            {"admissions", state.admissions},
            {"forced_holds", state.forced_holds},
            {"holds_expired", state.holds_expired},
            {"chosen_policy", state.chosen_policy},
            {"fallback_causes", causes_in_force(state.fallback)},
            {"groups", json::object()},
            {"workers", json::object()}};
  for (std::size_t g = 0; g < state.groups.size(); ++g) {
    body["groups"][std::to_string(g)] = group_json(state.groups[g], look.kv_capacity[g]);
  }
  for (const WorkerRecord& worker : state.workers) {
    if (worker.state == WorkerState::removed) continue;
    const std::string id = std::to_string(worker.id.value());
    body["workers"][id] = worker_json(worker, state.members[worker.id.value()]);
    add_to_columns(body["groups"][std::to_string(worker.group.value())], worker, state);
  }
  if (state.prefill) body["prefill"] = prefill_json(*state.prefill, fleet, service.clock.now());
  if (state.shadow) body["shadow"] = shadow_json(*state.shadow);
  if (state.predictor) body["predictor"] = predictor_json(*state.predictor);
  return body;
}

}  // namespace

FleetLook look_at(Fleet& fleet, std::uint64_t after, bool watched) {
  Dispatcher& dispatcher = fleet.dispatcher();
  dispatcher.watch_decisions(watched);
  FleetLook look{.state = fleet.snapshot(false), .decisions = dispatcher.decisions_after(after), .kv_capacity = {}};
  for (const GroupParams& group : fleet.params().groups) look.kv_capacity.push_back(group.kv.space().capacity);
  return look;
}

json live_view(const ServiceContext& service, const std::vector<FleetLook>& looks, bool draining,
               const telemetry::RecentTimes& recent) {
  json body{{"version", BALANCEROUTE_VERSION},
            {"draining", draining},
            {"output_tokens", service.metrics.tokens()},
            {"recent",
             {{"span_s", telemetry::RecentRequests::kSpan.count()},
              {"arrival_wait_ms", summary_json(recent.arrival_wait, 1000, 1)},
              {"pool_wait_ms", summary_json(recent.pool_wait, 1000, 1)},
              {"ttft_ms", summary_json(recent.ttft, 1000, 1)},
              {"tpot_ms", summary_json(recent.tpot, 1000, 2)},
              {"e2e_ms", summary_json(recent.e2e, 1000, 1)}}}};
  const auto finished = service.metrics.finished();
  for (std::size_t i = 0; i < finished.size(); ++i) {
    body["requests"][std::string{telemetry::to_string(static_cast<telemetry::Outcome>(i))}] = finished[i];
  }
  for (std::size_t f = 0; f < looks.size(); ++f) {
    body["fleets"][looks[f].state.fleet] = fleet_json(service, *service.fleets[f], looks[f]);
  }
  return body;
}

json decisions_json(const FleetLook& look, net::TimePoint start) {
  const auto seconds = [](net::Duration span) { return rounded(std::chrono::duration<double>{span}.count(), 3); };
  json all = json::array();
  for (const DecisionRecord& record : look.decisions) {
    json one{{"fleet", look.state.fleet},
             {"serial", record.serial},
             {"at_s", seconds(record.at - start)},
             {"waited_s", seconds(record.waited)},
             {"request", record.request.value()},
             {"worker", record.worker.value()},
             {"group", std::to_string(record.group.value())},
             {"prompt_tokens", record.prompt.count()},
             {"sequences", record.sequences},
             {"stage", to_string(record.stage)},
             {"set_size", record.set_size},
             {"score", rounded(record.score, 3)},
             {"margin_tokens", record.margin.count()},
             {"envelope_tokens", record.envelope.count()}};
    if (record.runner_up) {
      one["runner_up"] = {{"worker", record.runner_up->worker.value()}, {"score", rounded(record.runner_up->score, 3)}};
    }
    if (record.shadow) one["shadow_worker"] = record.shadow->value();
    all.push_back(std::move(one));
  }
  return all;
}

LiveHistory::Row history_row(const ServiceContext& service, const std::vector<FleetLook>& looks) {
  LiveHistory::Row row{{"output_tokens", static_cast<double>(service.metrics.tokens())}};
  for (const FleetLook& look : looks) {
    const FleetSnapshot& state = look.state;
    row.emplace_back(state.fleet + "/waiting", static_cast<double>(state.waiting));
    add_shadow(row, state);
    if (state.prefill) row.emplace_back(state.fleet + "/arrival_waiting", static_cast<double>(state.prefill->waiting));
    for (std::size_t g = 0; g < state.groups.size(); ++g) {
      const FleetSnapshot::Group& group = state.groups[g];
      const std::string name = state.fleet + "/" + std::to_string(g) + "/";
      std::vector<std::pair<WorkerId, Tokens>> loads;
      double total = 0;
      double sequences = 0;
      for (const WorkerRecord& worker : state.workers) {
        if (worker.group.value() != g || worker.state == WorkerState::removed) continue;
        loads.emplace_back(worker.id, worker.load);
        total += static_cast<double>(worker.load.count());
        sequences += worker.sequences;
      }
      if (loads.empty()) continue;
      row.emplace_back(name + "envelope", static_cast<double>(group.envelope.count()));
      row.emplace_back(name + "mean", std::round(total / static_cast<double>(loads.size())));
      row.emplace_back(name + "least", static_cast<double>((group.envelope - group.spread).count()));
      row.emplace_back(name + "sequences", sequences);
      row.emplace_back(name + "step_ms", rounded(group.measures.step_seconds * 1000, 2));
      row.emplace_back(name + "load_idle", rounded(group.measures.load_idle_fraction, 4));
      row.emplace_back(name + "barrier_idle", rounded(group.measures.barrier_idle_fraction, 4));
      if (loads.size() > kLines) continue;
      for (const auto& [id, load] : loads) {
        row.emplace_back(name + "load/" + std::to_string(id.value()), static_cast<double>(load.count()));
      }
    }
  }
  return row;
}

}  // namespace balanceroute::proxy
