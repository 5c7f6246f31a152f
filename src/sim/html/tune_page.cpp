// tune_page.cpp - the map of a search as a page: a table a horizon, coloured by how good each setting is.
#include <fmt/format.h>

#include <algorithm>

#include "sim/html/markup.hpp"
#include "sim/html/page.hpp"
#include "sim/html/sections.hpp"
#include "sim/tune_report.hpp"

namespace balanceroute::sim {
namespace {

// How deep a cell is coloured: from 0 for the worst setting of the map to 55 % for the best.
class Shade {
 public:
  explicit Shade(const Tuned& tuned) : more_is_better_{tuned.objective().more_is_better} {
    const auto [low, high] = std::ranges::minmax(tuned.trials, {}, [](const Trial& trial) { return trial.value.mean; });
    low_ = low.value.mean;
    span_ = high.value.mean - low_;
  }

  [[nodiscard]] int percent(double value) const {
    if (span_ <= 0) return 0;
    const double place = (value - low_) / span_;
    return static_cast<int>(55 * (more_is_better_ ? place : 1 - place));
  }

 private:
  bool more_is_better_;
  double low_ = 0;
  double span_ = 0;
};

std::string cell(const Tuned& tuned, std::size_t index, const Shade& shade) {
  const Trial& trial = tuned.trials[index];
  const std::string change = index == tuned.standard ? "default" : html::change_text(trial.change) + " %";
  return fmt::format("<td{} style=\"--p:{}%\">{}{}<br><span class=\"pm\">{}</span></td>",
                     index == tuned.best ? " class=\"chosen\"" : "", shade.percent(trial.value.mean),
                     html::short_number(trial.value.mean), trial.non_stationary ? " *" : "", change);
}

std::string map(const Tuned& tuned, std::size_t first, const Shade& shade) {
  const TuneParams& params = tuned.params;
  const Setting& setting = tuned.trials[first].setting;
  std::string text = fmt::format(
      "<div class=\"scroll\" tabindex=\"0\"><table class=\"map\"><caption><span>Horizon {} steps, {} candidates; gamma "
      "down, beta across</span></caption>\n<thead><tr><th scope=\"col\">gamma</th>",
      setting.horizon_steps, setting.r_max);
  for (const double beta : params.betas) text += fmt::format("<th scope=\"col\">beta {}</th>", beta);
  text += "</tr></thead>\n<tbody>\n";
  for (std::size_t row = 0; row < params.gammas.size(); ++row) {
    text += fmt::format("<tr><th scope=\"row\">{}</th>", params.gammas[row]);
    for (std::size_t column = 0; column < params.betas.size(); ++column) {
      text += cell(tuned, first + row * params.betas.size() + column, shade);
    }
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string outcome(const Tuned& tuned) {
  const bool doubtful = !tuned.default_is_best() && !tuned.sure();
  return fmt::format("<p{}>{}</p>\n<h2>To paste</h2>\n<pre tabindex=\"0\"><code>{}</code></pre>\n",
                     doubtful ? " class=\"warning\"" : "", html::escaped(verdict(tuned)),
                     html::escaped(config_lines(tuned)));
}

}  // namespace

std::string tune_html(const Tuned& tuned) {
  const TuneParams& params = tuned.params;
  const Shade shade{tuned};
  std::string body = fmt::format(
      "<h1>br_h tuned on {}</h1>\n<p>{} requests; {} workers with {} slots, load {}; {} seeds. Objective: {}. Each "
      "cell "
      "has its mean and the change against the default with half of a 95 % interval; the deeper the colour the better; "
      "the best one is framed.</p>\n",
      html::escaped(tuned.trace_name), tuned.lengths.requests, params.workers, params.common.slots, params.load,
      params.seeds.size(), tuned.objective().title);
  body += outcome(tuned) + "<h2>Map</h2>\n";
  const std::size_t size = params.gammas.size() * params.betas.size();
  const std::size_t maps = params.horizons.size() * params.r_max.size();
  for (std::size_t i = 0; i < maps; ++i) body += map(tuned, i * size, shade);
  return html::page("br_h tuned on " + tuned.trace_name, body);
}

}  // namespace balanceroute::sim
