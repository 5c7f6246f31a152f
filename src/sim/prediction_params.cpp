#include "sim/prediction_params.hpp"

#include <limits>

namespace balanceroute::sim {

void PredictionParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"trace", "File of recorded requests: CSV or JSON lines, gzip or plain."}, trace);
  history.visit_params(visitor);
  visitor.integer({"horizon_steps", "Tokens ahead: what is foretold is whether an answer ends within them."},
                  horizon_steps, {1, 4'096});
  visitor.real(
      {"step_ms", "Time from token to token, where requests come from a trace; a history has their own times."},
      step_ms, {0.001, 10'000});
  visitor.integer_or_auto({"limit", "Take no more requests than this; auto is all."}, limit, kAll,
                          {1, std::numeric_limits<std::int64_t>::max()});
  visitor.flag({"skip_bad_rows", "Leave out and count bad rows of the trace instead of refusing it."}, skip_bad_rows);
  predictor.visit_settings(visitor);
  visitor.text(
      {"json", "File to write the results to as JSON; - is standard output, and the table goes to standard error."},
      json);
}

}  // namespace balanceroute::sim
