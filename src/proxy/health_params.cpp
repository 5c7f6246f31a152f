#include "proxy/health_params.hpp"

namespace balanceroute::proxy {

namespace {
constexpr double kHourMs = 3'600'000;
}

void HealthParams::visit_params(ParamVisitor& visitor) {
  visitor.real({"interval_ms",
                "Time between two probes (GET /health) of a worker; 0 means that workers are taken for healthy at the "
                "start and judged by requests alone."},
               interval_ms, {0, kHourMs});
  visitor.real({"timeout_ms", "Longest wait for the answer to a probe."}, timeout_ms, {1, kHourMs});
  visitor.integer({"unhealthy_after", "Failed probes or connections in a row after which a worker counts as dead."},
                  unhealthy_after, {1, 1000});
  visitor.integer({"healthy_after", "Good probes in a row after which a dead worker counts as ready."}, healthy_after,
                  {1, 1000});
  visitor.integer({"hold_after",
                   "Requests that a worker failed in a row, though it could be reached, after which it is held back."},
                  hold_after, {1, 1000});
  visitor.real(
      {"hold_ms",
       "How long a worker is held back before it is tried again; if it fails a request on trial, twice as long. A "
       "trial without a failure ends after the same time."},
      hold_ms, {1, kHourMs});
  visitor.real({"longest_hold_ms", "The longest time that a worker is held back."}, longest_hold_ms, {1, kHourMs});
  visitor.integer({"trial_requests", "Requests that a worker on trial is given at once."}, trial_requests, {1, 1000});
  visitor.integer({"release_after", "Complete answers in a row that end a trial."}, release_after, {1, 1000});
  visitor.flag({"metrics",
                "Whether each probe also reads the engine's /metrics, to find restarts, wrong slots and requests that "
                "others send."},
               metrics);
}

}  // namespace balanceroute::proxy
