#include "proxy/balance_report.hpp"

#include <string>

#include "telemetry/metrics.hpp"

namespace balanceroute::proxy {

namespace {

using prometheus::MetricFamily;
using prometheus::MetricType;
using telemetry::add_histogram;
using telemetry::add_sample;
using telemetry::Label;
using telemetry::make_family;

}  // namespace

std::vector<MetricFamily> balance_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily envelope =
      make_family("balanceroute_group_envelope_tokens_total",
                  "Tokens read by the most loaded worker, summed over the group's steps.", MetricType::Counter);
  MetricFamily mean = make_family("balanceroute_group_mean_load_tokens_total",
                                  "Tokens read by a mean worker, summed over the group's steps.", MetricType::Counter);
  MetricFamily seconds = make_family("balanceroute_group_stepping_seconds_total",
                                     "Time of the group's steps, pauses left out.", MetricType::Counter);
  MetricFamily idle =
      make_family("balanceroute_group_idle_seconds_total",
                  "Time of those steps that a mean worker waits for the most loaded one.", MetricType::Counter);
  MetricFamily load_share = make_family("balanceroute_group_load_idle_ratio",
                                        "Share of reading capacity unused in the last steps.", MetricType::Gauge);
  MetricFamily barrier_share =
      make_family("balanceroute_group_barrier_idle_ratio",
                  "Share of worker time lost at the barrier in the last steps.", MetricType::Gauge);
  MetricFamily measured =
      make_family("balanceroute_group_token_price_measured",
                  "1 if the price of a token in a step is measured; else barrier idle shares are the most they can be.",
                  MetricType::Gauge);
  MetricFamily fixed =
      make_family("balanceroute_group_step_fixed_seconds",
                  "Part of a step that does not depend on load; 0 until it is measured.", MetricType::Gauge);
  MetricFamily price =
      make_family("balanceroute_group_step_seconds_per_token",
                  "Time that a token of the envelope adds to a step; 0 until it is measured.", MetricType::Gauge);
  for (const FleetSnapshot& fleet : snapshots) {
    for (const FleetSnapshot::Group& group : fleet.groups) {
      const std::vector<Label> labels{{"fleet", fleet.fleet}, {"group", group.name}};
      const GroupMeasures& measures = group.measures;
      add_sample(envelope, labels, measures.tokens_read);
      add_sample(mean, labels, measures.tokens_read_mean);
      add_sample(seconds, labels, measures.seconds);
      add_sample(idle, labels, measures.idle_seconds);
      add_sample(load_share, labels, measures.load_idle_fraction);
      add_sample(barrier_share, labels, measures.barrier_idle_fraction);
      add_sample(measured, labels, measures.source == PriceSource::measured ? 1 : 0);
      add_sample(fixed, labels, measures.fixed_ms / 1000);
      add_sample(price, labels, measures.per_token_ms / 1000);
    }
  }
  return {envelope, mean, seconds, idle, load_share, barrier_share, measured, fixed, price};
}

std::vector<MetricFamily> decision_families(const std::vector<FleetSnapshot>& snapshots) {
  MetricFamily admissions = make_family("balanceroute_decision_admissions_total",
                                        "Requests given to a worker, by the rule that chose it.", MetricType::Counter);
  MetricFamily rounds =
      make_family("balanceroute_decision_round_seconds", "Time that a decision round takes.", MetricType::Histogram);
  MetricFamily brier =
      make_family("balanceroute_predictor_brier_score",
                  "Mean squared error of predicted chances to end within the horizon; 0 is best.", MetricType::Gauge);
  MetricFamily reference =
      make_family("balanceroute_predictor_brier_reference",
                  "The same of always predicting the share that ended: what a predictor must beat.", MetricType::Gauge);
  MetricFamily outcomes =
      make_family("balanceroute_predictor_outcomes_total", "Predictions whose outcome is known.", MetricType::Counter);
  MetricFamily predicted = make_family("balanceroute_predictor_predicted_ends_ratio",
                                       "Mean predicted chance to end within the horizon.", MetricType::Gauge);
  MetricFamily happened =
      make_family("balanceroute_predictor_ends_ratio", "Share that did end within the horizon.", MetricType::Gauge);
  MetricFamily prompts = make_family("balanceroute_predictor_key_requests_total",
                                     "Requests that ended under the predictor.", MetricType::Counter);
  MetricFamily hits = make_family("balanceroute_predictor_key_hits_total",
                                  "Those of them whose prompt the predictor knew.", MetricType::Counter);
  for (const FleetSnapshot& fleet : snapshots) {
    for (std::size_t s = 0; s < kStages; ++s) {
      add_sample(admissions, {{"fleet", fleet.fleet}, {"stage", std::string{to_string(static_cast<Stage>(s))}}},
                 static_cast<double>(fleet.admissions_by_stage[s]));
    }
    add_histogram(rounds, {{"fleet", fleet.fleet}}, fleet.round_times);
    if (!fleet.predictor) continue;
    const std::vector<Label> labels{{"fleet", fleet.fleet}, {"predictor", fleet.predictor->name}};
    add_sample(brier, labels, fleet.predictor->brier_score);
    add_sample(reference, labels, fleet.predictor->brier_reference);
    add_sample(outcomes, labels, static_cast<double>(fleet.predictor->predictions));
    add_sample(predicted, labels, fleet.predictor->mean_predicted);
    add_sample(happened, labels, fleet.predictor->mean_happened);
    add_sample(prompts, labels, static_cast<double>(fleet.predictor->key_hits.requests));
    add_sample(hits, labels, static_cast<double>(fleet.predictor->key_hits.hits));
  }
  return {admissions, rounds, brier, reference, outcomes, predicted, happened, prompts, hits};
}

}  // namespace balanceroute::proxy
