#include "sim/tune_report.hpp"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "sim/settings.hpp"
#include "sim/text_table.hpp"

namespace balanceroute::sim {
namespace {

using Json = nlohmann::ordered_json;

std::string interval(const MeanInterval& gain) {
  std::string text = fmt::format("{:+.2f}", gain.mean);
  if (gain.half_width) text += fmt::format(" +- {:.2f}", *gain.half_width);
  return text + " %";
}

std::string setting_text(const Setting& setting) {
  return fmt::format("beta {}, gamma {}, horizon {} steps, {} candidates", setting.beta, setting.gamma,
                     setting.horizon_steps, setting.r_max);
}

// "+1.23": the change against the default; "<" marks the best setting, "*" one that was not stationary.
std::string cell_text(const Tuned& tuned, std::size_t trial) {
  const Trial& its = tuned.trials[trial];
  std::string text = trial == tuned.standard ? "default" : fmt::format("{:+.2f}", its.change.mean);
  if (trial == tuned.best) text += " <";
  if (its.non_stationary) text += " *";
  return text;
}

// The map of one horizon and number of candidates, which begins with the trial `first`.
std::string map_text(const Tuned& tuned, std::size_t first) {
  const TuneParams& params = tuned.params;
  TextTable table;
  std::vector<std::string> titles{"gamma \\ beta"};
  for (const double beta : params.betas) titles.push_back(fmt::format("{}", beta));
  table.add(std::move(titles));
  for (std::size_t row = 0; row < params.gammas.size(); ++row) {
    std::vector<std::string> cells{fmt::format("{}", params.gammas[row])};
    for (std::size_t column = 0; column < params.betas.size(); ++column) {
      cells.push_back(cell_text(tuned, first + row * params.betas.size() + column));
    }
    table.add(std::move(cells));
  }
  const Setting& setting = tuned.trials[first].setting;
  return fmt::format("\nhorizon {} steps, {} candidates\n{}", setting.horizon_steps, setting.r_max, table.text());
}

Json interval_json(const MeanInterval& value) {
  return {{"mean", value.mean}, {"half_width", value.half_width ? Json(*value.half_width) : Json(nullptr)}};
}

Json setting_json(const Setting& setting) {
  return {{"beta", setting.beta},
          {"gamma", setting.gamma},
          {"horizon_steps", setting.horizon_steps},
          {"r_max", setting.r_max}};
}

Json trial_json(const Trial& trial) {
  Json told = setting_json(trial.setting);
  told["value"] = interval_json(trial.value);
  told["change_percent"] = interval_json(trial.change);
  told["non_stationary"] = trial.non_stationary;
  return told;
}

bool any_unsettled(const Tuned& tuned) {
  return std::ranges::any_of(tuned.trials, &Trial::non_stationary);
}

}  // namespace

std::string verdict(const Tuned& tuned) {
  const std::string best = setting_text(tuned.trials[tuned.best].setting);
  const std::string plain =
      fmt::format("On other seeds it is {} better than least_tokens.", interval(tuned.gain_on_least_tokens));
  if (tuned.default_is_best()) return fmt::format("The default is best: {}. {}", best, plain);
  std::string text = fmt::format("Best: {}. On other seeds it is {} better than the default. {}", best,
                                 interval(tuned.gain_on_default), plain);
  if (!tuned.sure()) text += " The lead over the default is within chance: more seeds or a longer run, or the default.";
  return text;
}

std::string tune_table(const Tuned& tuned) {
  const TuneParams& params = tuned.params;
  std::string text = fmt::format(
      "{}: {} requests; {} workers with {} slots, load {}, {} seeds\n{}: change against the default, %; < is the "
      "best\n",
      tuned.trace_name, tuned.lengths.requests, params.workers, params.common.slots, params.load, params.seeds.size(),
      tuned.objective().title);
  const std::size_t map = params.gammas.size() * params.betas.size();
  const std::size_t maps = params.horizons.size() * params.r_max.size();
  for (std::size_t i = 0; i < maps; ++i) text += map_text(tuned, i * map);
  if (any_unsettled(tuned))
    text += "\n* not stationary, which supports no claim: a longer run (--repeat) may cure it.\n";
  return text + "\n" + verdict(tuned) + "\n\n" + config_lines(tuned);
}

std::string tune_json(const Tuned& tuned) {
  const Setting& best = tuned.trials[tuned.best].setting;
  Json report{{"trace", {{"name", tuned.trace_name}, {"requests", tuned.lengths.requests}}},
              {"workers", tuned.params.workers},
              {"load", tuned.params.load},
              {"seeds", tuned.params.seeds},
              {"objective", tuned.objective().name},
              {"more_is_better", tuned.objective().more_is_better},
              {"default", setting_json(tuned.trials[tuned.standard].setting)},
              {"best", setting_json(best)},
              {"gain_on_default_percent", interval_json(tuned.gain_on_default)},
              {"gain_on_least_tokens_percent", interval_json(tuned.gain_on_least_tokens)},
              {"within_noise", !tuned.default_is_best() && !tuned.sure()},
              {"trials", Json::array()},
              {"settings", settings_of(tuned.params.common, tuned.params.common.policy_settings)}};
  for (const Trial& trial : tuned.trials) report["trials"].push_back(trial_json(trial));
  return report.dump(2) + "\n";
}

}  // namespace balanceroute::sim
