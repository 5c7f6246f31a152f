#include "sim/tune_params.hpp"

#include <limits>
#include <utility>

#include "predict/registry.hpp"
#include "sim/objective.hpp"
#include "sim/without.hpp"

namespace balanceroute::sim {

void TuneParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"trace", "File of recorded requests: CSV or JSON lines, gzip or plain."}, common.trace);
  common.history.visit_params(visitor);
  visitor.reals({"beta", "Weights of tokens above the largest load to try."}, betas, {0, 1e6});
  visitor.reals({"gamma", "What a step further ahead weighs, as a factor: values to try."}, gammas, {0, 1});
  visitor.integers({"horizon_steps", "Numbers of steps ahead to try."}, horizons, {1, 512});
  visitor.integers({"r_max", "Numbers of waiting requests to choose from to try."}, r_max,
                   {1, PolicyParams::kMostCandidates});
  visitor.choice(
      {"objective", "What the best setting is best in; auto is throughput from load 1 on and step_ms below."},
      objective, objective_names());
  visitor.integer({"workers", "Decode workers of a group."}, workers, {2, 65'536});
  visitor.real({"load", "Rate of arrivals over what perfectly balanced, always full workers finish."}, load,
               {0.001, 100});
  visitor.integers(
      {"seed", "Seeds of all that is drawn, shared by the settings; the best one is tried again on others."}, seeds,
      {0, std::numeric_limits<std::int64_t>::max() / 2});
  visitor.choice({"predictor", "What br_h knows of the length of answers; oracle is the truth."},
                 common.policy_settings.predictor.name, predictor_names());
  Without others{visitor, {"beta", "gamma", "horizon_steps", "r_max"}};
  common.visit_settings(others);
  visitor.text(
      {"json", "File to write the results to as JSON; - is standard output, and the table goes to standard error."},
      json);
  visitor.text({"html", "File to write a page to: a map of the settings."}, html);
}

SimulateParams TuneParams::simulation(std::vector<std::int64_t> with_seeds) const {
  SimulateParams params = common;
  params.workers = {workers};
  params.loads = {load};
  params.seeds = std::move(with_seeds);
  return params;
}

}  // namespace balanceroute::sim
