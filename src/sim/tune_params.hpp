// tune_params.hpp - the settings of `tune`.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/params.hpp"
#include "sim/simulate_params.hpp"

namespace balanceroute::sim {

// TuneParams says which settings of br_h are tried, and on what.
struct TuneParams {
  std::int64_t workers = 8;
  double load = 1.1;
  std::vector<std::int64_t> seeds{1, 2, 3};
  std::vector<double> betas{8, 43, 200};
  std::vector<double> gammas{0.7, 0.86, 0.95};
  std::vector<std::int64_t> horizons{20, 80};
  std::vector<std::int64_t> r_max{4};
  std::string objective = "auto";
  SimulateParams common;  // all else: trace, fleet, model, and what the policy is set to but for the above

  std::string json;
  std::string html;

  void visit_params(ParamVisitor& visitor);

  // `common` with the workers, load and these seeds.
  [[nodiscard]] SimulateParams simulation(std::vector<std::int64_t> with_seeds) const;
};

}  // namespace balanceroute::sim
