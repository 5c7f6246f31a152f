#include "sim/tuning.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "sim/comparison.hpp"
#include "sim/settings.hpp"

namespace balanceroute::sim {
namespace {

using Json = nlohmann::ordered_json;

Setting setting_of(const PolicyParams& policy) {
  const PolicyParams complete = with_preset(policy);
  return {
      .beta = complete.beta, .gamma = complete.gamma, .horizon_steps = complete.horizon_steps, .r_max = complete.r_max};
}

PolicyParams with(PolicyParams policy, const Setting& setting) {
  policy.name = "br_h";
  policy.beta = setting.beta;
  policy.gamma = setting.gamma;
  policy.horizon_steps = setting.horizon_steps;
  policy.r_max = setting.r_max;
  return policy;
}

std::vector<Setting> grid(const TuneParams& params) {
  std::vector<Setting> settings;
  for (const std::int64_t horizon : params.horizons) {
    for (const std::int64_t r_max : params.r_max) {
      for (const double gamma : params.gammas) {
        for (const double beta : params.betas) {
          settings.push_back({.beta = beta, .gamma = gamma, .horizon_steps = horizon, .r_max = r_max});
        }
      }
    }
  }
  return settings;
}

// As many others as there are, none of them among these.
std::vector<std::int64_t> other_seeds(const std::vector<std::int64_t>& seeds) {
  std::vector<std::int64_t> others(seeds.size());
  std::iota(others.begin(), others.end(), std::ranges::max(seeds) + 1);
  return others;
}

// How much better, in percent: positive whichever way is better.
MeanInterval gain(const Objective& objective, Cell ours, Cell theirs) {
  MeanInterval change = change_of(ours, theirs, objective.measure);
  if (!objective.more_is_better) change.mean = -change.mean;
  return change;
}

void try_all(Tuned& tuned, const Experiment& experiment, std::span<const Run> runs) {
  const Block block = blocks_of(experiment, runs).front();
  const Objective& objective = tuned.objective();
  for (std::size_t i = 0; i < tuned.trials.size(); ++i) {
    Trial& trial = tuned.trials[i];
    trial.value = mean_of(block.cell(i), objective.measure);
    trial.change = change_of(block.cell(i), block.cell(tuned.standard), objective.measure);
    trial.non_stationary = any_non_stationary(block.cell(i));
  }
  for (std::size_t i = 0; i < tuned.trials.size(); ++i) {
    if (objective.better(tuned.trials[i].value.mean, tuned.trials[tuned.best].value.mean)) tuned.best = i;
  }
}

std::string plain(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  return value.is_number_float() ? fmt::format("{}", value.get<double>()) : value.dump();
}

std::string section_lines(const std::string& section, const Json& members, const Json& standard) {
  std::string text;
  for (const auto& [name, value] : members.items()) {
    if (value != standard[name]) text += fmt::format("    {}: {}\n", name, plain(value));
  }
  return text.empty() ? text : fmt::format("  {}:\n{}", section, text);
}

std::expected<void, std::string> confirm(Tuned& tuned, std::size_t threads) {
  const PolicyParams& policy = tuned.params.common.policy_settings;
  std::vector<Variant> variants{{.label = "least_tokens", .policy = policy}};
  variants.front().policy = settings_for("least_tokens", policy, {});
  for (const std::size_t trial : {tuned.standard, tuned.best}) {
    variants.push_back({.label = "br_h", .policy = with(policy, tuned.trials[trial].setting)});
  }
  const auto experiment =
      Experiment::prepare(tuned.params.simulation(other_seeds(tuned.params.seeds)), std::move(variants));
  if (!experiment) return std::unexpected(experiment.error());
  const std::vector<Run> runs = experiment->run(threads);
  const Block block = blocks_of(*experiment, runs).front();
  tuned.gain_on_default = gain(tuned.objective(), block.cell(2), block.cell(1));
  tuned.gain_on_least_tokens = gain(tuned.objective(), block.cell(2), block.cell(0));
  return {};
}

}  // namespace

std::expected<Tuned, std::string> tune(const TuneParams& params, std::size_t threads,
                                       const Experiment::Progress& progress) {
  std::vector<Setting> settings = grid(params);
  const Setting standard = setting_of(params.common.policy_settings);
  if (std::ranges::find(settings, standard) == settings.end()) settings.push_back(standard);
  std::vector<Variant> variants;
  for (const Setting& setting : settings) {
    variants.push_back({.label = "br_h", .policy = with(params.common.policy_settings, setting)});
  }
  const auto experiment = Experiment::prepare(params.simulation(params.seeds), std::move(variants));
  if (!experiment) return std::unexpected(experiment.error());

  Tuned tuned{.params = params, .trace_name = experiment->trace().name, .lengths = experiment->lengths()};
  for (const Setting& setting : settings) tuned.trials.push_back({.setting = setting});
  tuned.standard = static_cast<std::size_t>(std::ranges::find(settings, standard) - settings.begin());
  tuned.best = tuned.standard;
  try_all(tuned, *experiment, experiment->run(threads, progress));
  if (auto confirmed = confirm(tuned, threads); !confirmed) return std::unexpected(std::move(confirmed).error());
  return tuned;
}

std::string config_lines(const Tuned& tuned) {
  const PolicyParams best = with(tuned.params.common.policy_settings, tuned.trials[tuned.best].setting);
  const Json given = settings_of(best);
  const Json standard = settings_of(PolicyParams{});
  std::string text = "policy:\n  name: br_h\n";
  for (const auto& [name, value] : given.items()) {
    if (!value.is_object() && value != standard[name]) text += fmt::format("  {}: {}\n", name, plain(value));
  }
  for (const auto& [section, members] : given.items()) {
    if (members.is_object()) text += section_lines(section, members, standard[section]);
  }
  return text;
}

}  // namespace balanceroute::sim
