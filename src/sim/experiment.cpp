#include "sim/experiment.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <future>
#include <mutex>
#include <utility>

#include "policy/registry.hpp"
#include "sim/request_stream.hpp"
#include "sim/seeds.hpp"
#include "sim/simulation.hpp"
#include "sim/step_table_file.hpp"
#include "trace/reader.hpp"

namespace balanceroute::sim {
namespace {

// Leaves out requests of fewer output tokens; the first that stays arrives at 0.
void keep_outputs_from(Tokens least, std::vector<trace::TraceRequest>& requests) {
  std::erase_if(requests, [least](const trace::TraceRequest& request) { return request.output < least; });
  if (requests.empty()) return;
  const auto start = requests.front().arrival;
  for (trace::TraceRequest& request : requests) request.arrival -= start;
}

// A worker must be able to hold each request to its end, and to be given it beside the reserve.
std::expected<void, std::string> check_fits(const SimulateParams& params,
                                            std::span<const trace::TraceRequest> requests) {
  const LoadModel blocks = LoadModel::paged(Tokens{params.kv.block_size});
  const KvSpace space = params.kv.space();
  Tokens needed{0};
  for (const trace::TraceRequest& request : requests) {
    const Tokens to_enter = blocks.weight_of(request.prompt) + space.reserve;
    needed = std::max({needed, to_enter, blocks.weight_of(request.prompt + request.output)});
  }
  if (needed <= space.capacity) return {};
  return std::unexpected("--kv-capacity-tokens = " + std::to_string(params.kv.capacity_tokens) +
                         ": expected at least " + std::to_string(needed.count()) + ", for the largest request of " +
                         params.source());
}

// Runs to the end, following the first group through the measured window.
Trajectory drawn(Simulation& simulation, std::size_t points) {
  TrajectoryRecorder recorder{points};
  while (const auto step = simulation.step()) {
    if (!step->measured || step->group != 0) continue;
    recorder.step(step->start, step->duration, step->loads.loads, step->loads.active);
  }
  return recorder.result();
}

// Whether the policy asks a predictor.
bool predicts(const PolicyParams& params) {
  const TrueLengths lengths;
  const auto policy = make_policy(params, {.lengths = &lengths});
  return policy && (*policy)->prediction_report();
}

Variant predicting(PolicyParams policy, const std::string& predictor) {
  policy.predictor.name = predictor;
  return {.label = policy.name + " " + predictor, .policy = policy, .predictor = predictor};
}

// Whether the policy can route for every size of group.
std::expected<void, std::string> check_variant(const SimulateParams& params, const Variant& variant) {
  if (auto valid = balanceroute::validate(variant.policy, "--"); !valid) return valid;
  const TrueLengths lengths;
  const PolicyContext context{.load_model = params.load_model.model(), .lengths = &lengths};
  if (auto made = make_policy(variant.policy, context); !made) return std::unexpected(std::move(made).error());
  for (const std::int64_t workers : params.workers) {
    auto fits = validate_for_group(variant.policy, "of --workers " + std::to_string(workers),
                                   static_cast<std::size_t>(workers), true);
    if (!fits) return fits;
  }
  return {};
}

// The requests that the settings choose, if they can be played.
std::expected<trace::Trace, std::string> read_requests(const SimulateParams& params) {
  trace::ReadOptions options{.skip_bad_rows = params.skip_bad_rows};
  if (params.limit != SimulateParams::kAll) options.limit = params.limit;
  auto trace = trace::read_either(params.trace, params.history, options);
  if (!trace) return trace;
  keep_outputs_from(Tokens{params.min_output}, trace->requests);
  if (trace->requests.empty()) {
    return std::unexpected(params.source() + ": no request has " + std::to_string(params.min_output) +
                           " output tokens or more, as --min-output asks");
  }
  if (params.arrivals == "trace" && trace::arrival_rate(trace->requests) == 0) {
    return std::unexpected(params.source() + ": has no arrival times that differ: expected --arrivals poisson");
  }
  if (auto fits = check_fits(params, trace->requests); !fits) return std::unexpected(std::move(fits).error());
  return trace;
}

}  // namespace

std::expected<Experiment, std::string> Experiment::prepare(const SimulateParams& params) {
  std::vector<Variant> variants;
  for (const std::string& name : params.policies) {
    const PolicyParams policy = settings_for(name, params.policy_settings, params.policies);
    if (predicts(policy)) {
      for (const std::string& predictor : params.predictors) variants.push_back(predicting(policy, predictor));
    } else {
      variants.push_back({.label = name, .policy = policy, .predictor = {}});
    }
  }
  return prepare(params, std::move(variants));
}

std::expected<Experiment, std::string> Experiment::prepare(const SimulateParams& params,
                                                           std::vector<Variant> variants) {
  if (auto valid = validate(params); !valid) return std::unexpected(std::move(valid).error());
  for (const Variant& variant : variants) {
    if (auto valid = check_variant(params, variant); !valid) return std::unexpected(std::move(valid).error());
  }
  auto trace = read_requests(params);
  if (!trace) return std::unexpected(std::move(trace).error());
  Experiment experiment{params, std::move(variants), *std::move(trace)};
  StepTime line = params.step_time.line();
  if (!params.step_time_table.empty()) {
    auto table = read_step_table(params.step_time_table);
    if (!table) return std::unexpected(std::move(table).error());
    line = table->line();
    experiment.step_table_ = std::make_shared<const StepTable>(*std::move(table));
  }
  for (Variant& variant : experiment.variants_) {
    variant.policy.br_fit.know_step_time(line.fixed_ms, line.per_token_ms);
  }
  return experiment;
}

Experiment::Experiment(const SimulateParams& params, std::vector<Variant> variants, trace::Trace trace)
    : params_{params},
      variants_{std::move(variants)},
      trace_{std::move(trace)},
      lengths_{trace::length_statistics(trace_.requests, params.load_model.model(), Tokens{params.kv.block_size})},
      law_{trace_.requests} {}

std::vector<Run> Experiment::planned() const {
  std::vector<Run> runs;
  for (const std::int64_t workers : params_.workers) {
    for (const double load : params_.loads) {
      for (std::size_t variant = 0; variant < variants_.size(); ++variant) {
        for (const std::int64_t seed : params_.seeds) {
          runs.push_back({.variant = variant,
                          .workers = static_cast<std::size_t>(workers),
                          .load = load,
                          .seed = static_cast<std::uint64_t>(seed)});
        }
      }
    }
  }
  return runs;
}

std::vector<Run> Experiment::run(std::size_t threads, const Progress& progress) const {
  std::vector<Run> runs = planned();
  std::atomic<std::size_t> next{0};
  std::mutex telling;
  std::size_t finished = 0;
  const auto work = [&] {
    for (std::size_t i = next++; i < runs.size(); i = next++) {
      simulate(runs[i]);
      if (!progress) continue;
      const std::lock_guard lock{telling};
      progress(++finished, runs.size());
    }
  };
  std::vector<std::future<void>> workers;
  for (std::size_t i = 1; i < std::min(threads, runs.size()); ++i) {
    workers.push_back(std::async(std::launch::async, work));
  }
  work();
  for (std::future<void>& worker : workers) worker.get();
  return runs;
}

// A page shows the first seed of each variant.
bool Experiment::draws(const Run& run) const {
  return !params_.html.empty() && run.seed == static_cast<std::uint64_t>(params_.seeds.front());
}

// As many as make a page of sane size.
std::size_t Experiment::points_of_trajectory(std::size_t workers) const {
  constexpr std::size_t kNumbersOfPage = 150'000;
  constexpr std::size_t kMostLines = 40;  // of a panel: workers beyond that are not drawn
  const std::size_t panels = variants_.size() * params_.workers.size() * params_.loads.size();
  const std::size_t points = kNumbersOfPage / (panels * std::min(workers + 4, kMostLines));
  return std::clamp<std::size_t>(points, 24, 320) / 2 * 2;
}

void Experiment::simulate(Run& run) const {
  const auto start = std::chrono::steady_clock::now();
  Fleet fleet = params_.fleet(run.workers);
  fleet.step_table = step_table_;
  fleet.max_wait = variants_[run.variant].policy.max_wait();
  const double rate = run.load * trace::capacity_per_second(lengths_, fleet.shape());
  const StreamSettings stream{.repeat = params_.repeat,
                              .arrivals = params_.arrivals == "trace" ? ArrivalLaw::trace : ArrivalLaw::poisson,
                              .rate_per_second = rate,
                              .seed = run.seed};
  const auto truth = std::make_shared<TrueLengths>();
  Simulation simulation{
      fleet,
      make_policy(variants_[run.variant].policy, {.load_model = fleet.load_model, .lengths = truth.get()}).value(),
      RequestStream{trace_.requests, stream}, seed_for(Purpose::policy, run.seed), truth};
  if (params_.warm_start) {
    const double active = trace::balanced_active(lengths_, fleet.shape(), rate);
    Random random{seed_for(Purpose::warm_start, run.seed)};
    simulation.warm_up(trace_.requests, law_,
                       static_cast<std::size_t>(std::llround(active * static_cast<double>(fleet.all_workers()))),
                       random);
  }
  if (draws(run)) {
    run.trajectory = drawn(simulation, points_of_trajectory(run.workers));
    run.result = simulation.result();
  } else {
    run.result = simulation.run();
  }
  run.prediction = simulation.router().policy().prediction_report();
  run.took = std::chrono::steady_clock::now() - start;
}

}  // namespace balanceroute::sim
