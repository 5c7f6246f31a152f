#include "proxy/fallback_report.hpp"

#include <string>
#include <string_view>

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

// Of the world that is here and of the shadow's.
void add_world(const FleetSnapshot& fleet, MetricFamily& idle, MetricFamily& imbalance) {
  for (std::size_t g = 0; g < fleet.shadow->world.size(); ++g) {
    const ShadowReport::Group& group = fleet.shadow->world[g];
    const auto add = [&](MetricFamily& to, std::string_view world, double value) {
      add_sample(to,
                 {{"fleet", fleet.fleet},
                  {"group", fleet.groups[g].name},
                  {"policy", fleet.shadow->policy},
                  {"world", std::string{world}}},
                 value);
    };
    add(idle, "live", group.here.load_idle_fraction());
    add(idle, "shadow", group.there.load_idle_fraction());
    add(imbalance, "live", number(fleet.groups[g].imbalance));
    add(imbalance, "shadow", number(group.imbalance));
  }
}

}  // namespace

std::vector<MetricFamily> fallback_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily active =
      make_family("balanceroute_fallback_active", "1 while the cause lets a simpler policy decide.", MetricType::Gauge);
  MetricFamily times =
      make_family("balanceroute_fallback_total", "How often the cause came into force.", MetricType::Counter);
  MetricFamily slow = make_family("balanceroute_decision_slow_rounds_total",
                                  "Rounds that took longer than fallback.slow_round_ms.", MetricType::Counter);
  MetricFamily errors =
      make_family("balanceroute_decision_policy_errors_total",
                  "Choices that could not be carried out, and rounds that broke off.", MetricType::Counter);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const FallbackCause cause : kFallbackCauses) {
      const FallbackStatus::Cause& its = fleet.fallback.causes[static_cast<std::size_t>(cause)];
      const std::vector<Label> labels{{"fleet", fleet.fleet}, {"cause", std::string{to_string(cause)}}};
      add_sample(active, labels, its.holds ? 1 : 0);
      add_sample(times, labels, static_cast<double>(its.times));
    }
    add_sample(slow, {{"fleet", fleet.fleet}}, static_cast<double>(fleet.slow_rounds));
    add_sample(errors, {{"fleet", fleet.fleet}}, static_cast<double>(fleet.policy_errors));
  }
  return {active, times, slow, errors};
}

std::vector<MetricFamily> shadow_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily rounds =
      make_family("balanceroute_shadow_rounds_total",
                  "Rounds in which the fleet's policy or its shadow placed something.", MetricType::Counter);
  MetricFamily worse = make_family("balanceroute_shadow_worse_rounds_total",
                                   "Rounds after which the group was less even than the shadow would have left it.",
                                   MetricType::Counter);
  MetricFamily regret = make_family("balanceroute_shadow_regret_tokens",
                                    "Sum over rounds of the imbalance after them, less that after the shadow's choice.",
                                    MetricType::Gauge);
  MetricFamily idle = make_family("balanceroute_shadow_load_idle_ratio",
                                  "Share of reading time that workers wait for the most loaded one, since the start.",
                                  MetricType::Gauge);
  MetricFamily imbalance =
      make_family("balanceroute_shadow_imbalance_tokens", "Imbalance of the group now.", MetricType::Gauge);
  MetricFamily stopped =
      make_family("balanceroute_shadow_stopped", "1 once the shadow has failed or was too slow, and is asked no more.",
                  MetricType::Gauge);
  MetricFamily waiting = make_family("balanceroute_shadow_waiting_requests",
                                     "Requests that wait in the shadow's world.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    if (!fleet.shadow) continue;
    const std::vector<Label> labels{{"fleet", fleet.fleet}, {"policy", fleet.shadow->policy}};
    add_sample(stopped, labels, fleet.shadow->stopped.empty() ? 0 : 1);
    if (fleet.shadow->step) {
      add_sample(rounds, labels, static_cast<double>(fleet.shadow->step->rounds));
      add_sample(worse, labels, static_cast<double>(fleet.shadow->step->worse));
      add_sample(regret, labels, number(fleet.shadow->step->regret));
      continue;
    }
    add_sample(waiting, labels, static_cast<double>(fleet.shadow->waiting));
    add_world(fleet, idle, imbalance);
  }
  return {rounds, worse, regret, idle, imbalance, waiting, stopped};
}

}  // namespace balanceroute::proxy
