// calibrate_params.hpp - the settings of `calibrate`.
#pragma once

#include <string>

#include "core/params.hpp"

namespace balanceroute::calibrate {

struct CalibrateParams {
  std::string steps;
  std::string json;

  void visit_params(ParamVisitor& visitor) {
    visitor.text({.name = "steps",
                  .doc = "CSV file of measured steps, plain or gzip: step_ms and max_tokens (load of the most loaded "
                         "worker), and if known sequences (of that worker) and total_tokens (of all).",
                  .required = true},
                 steps);
    visitor.text({"json", "File for the result as JSON; - is standard output."}, json);
  }
};

}  // namespace balanceroute::calibrate
