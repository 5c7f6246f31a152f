#include <nlohmann/json.hpp>

#include "sim/report.hpp"
#include "sim/settings.hpp"

namespace balanceroute::sim {
namespace {

using Json = nlohmann::ordered_json;

Json trace_of(const Experiment& experiment) {
  const trace::Trace& trace = experiment.trace();
  return {{"name", trace.name},
          {"kind", to_string(trace.kind)},
          {"requests", trace.requests.size()},
          {"skipped_rows", trace.skipped_rows},
          {"mean_prompt_tokens", experiment.lengths().mean_prompt},
          {"mean_output_tokens", experiment.lengths().mean_output},
          {"busy_slot_tokens", experiment.lengths().busy_slot_weight}};
}

Json summary(const Summary& values) {
  return {{"mean", values.mean}, {"p50", values.p50}, {"p95", values.p95}, {"p99", values.p99}, {"max", values.max}};
}

// Who pays, by length: "up_to" is the longest of its class, null for the last.
Json by_length(const LengthBucketEnds& ends, const ValuesByLength::ByBucket& tpot,
               const ValuesByLength::ByBucket& wait) {
  Json told = Json::array();
  for (std::size_t i = 0; i < kLengthBuckets; ++i) {
    told.push_back({{"up_to_tokens", i < ends.size() ? Json(ends[i].count()) : Json(nullptr)},
                    {"admitted", wait[i].count},
                    {"pool_wait_ms", {{"mean", wait[i].mean}, {"p99", wait[i].p99}}},
                    {"finished", tpot[i].count},
                    {"tpot_ms", {{"mean", tpot[i].mean}}}});
  }
  return told;
}

Json fairness(const RunResult& result) {
  return {{"by_prompt", by_length(kPromptBucketEnds, result.tpot_by_prompt_ms, result.wait_by_prompt_ms)},
          {"by_output", by_length(kOutputBucketEnds, result.tpot_by_output_ms, result.wait_by_output_ms)}};
}

// Whether requests that were predicted to end within the horizon did.
Json prediction(const PredictionReport& report) {
  const Calibration& calibration = report.calibration;
  return {{"horizon_steps", report.horizon.count()},
          {"outcomes", calibration.count()},
          {"predicted_finish_fraction", calibration.mean_predicted()},
          {"actual_finish_fraction", calibration.mean_happened()},
          {"brier_score", calibration.brier_score()},
          {"brier_score_of_constant", calibration.brier_reference()},
          {"requests_ended", report.key_hits.requests},
          {"key_hits", report.key_hits.hits}};
}

Json run_of(const Run& run, const Variant& variant, const Json& settings, bool timings) {
  const RunResult& result = run.result;
  Json told{{"policy", variant.policy.name},
            {"predictor", variant.predictor.empty() ? Json(nullptr) : Json(variant.predictor)},
            {"workers", run.workers},
            {"slots", settings["slots"]},
            {"load", run.load},
            {"seed", run.seed},
            {"non_stationary", result.non_stationary},
            {"spread_mean_tokens", result.spread_mean_tokens},
            {"imbalance_mean_tokens", result.imbalance_mean_tokens},
            {"load_idle_fraction", result.load_idle_fraction},
            {"barrier_idle_fraction", result.barrier_idle_fraction},
            {"throughput_tokens_per_s", result.throughput_tokens_per_s},
            {"bound_throughput_tokens_per_s", result.bound_throughput_tokens_per_s},
            {"bound_share", result.bound_share},
            {"step_ms_mean", result.step_ms_mean},
            {"tpot_ms", summary(result.tpot_ms)},
            {"ttft_ms", summary(result.ttft_ms)},
            {"pool_wait_ms", summary(result.pool_wait_ms)},
            {"active_mean", result.active_mean},
            {"busy_fraction", result.busy_fraction},
            {"slot_idle_fraction", result.slot_idle_fraction},
            {"slot_idle_waiting_fraction", result.slot_idle_waiting_fraction},
            {"steps", result.steps},
            {"forced_admissions", result.forced_admissions},
            {"preemptions", result.preemptions},
            {"recomputed_tokens", result.recomputed_tokens},
            {"energy_joule_per_token", result.energy_joule_per_token},
            {"fairness", fairness(result)},
            {"settings", settings}};
  if (run.prediction) told["prediction"] = prediction(*run.prediction);
  if (timings) told["took_s"] = run.took.count();
  return told;
}

}  // namespace

std::string json_report(const Experiment& experiment, std::span<const Run> runs) {
  std::vector<Json> settings;
  for (const Variant& variant : experiment.variants()) {
    settings.push_back(settings_of(experiment.params(), variant.policy));
  }
  Json report{{"trace", trace_of(experiment)}, {"runs", Json::array()}};
  for (const Run& run : runs) {
    report["runs"].push_back(
        run_of(run, experiment.variants()[run.variant], settings[run.variant], experiment.params().timings));
  }
  return report.dump(2) + "\n";
}

}  // namespace balanceroute::sim
