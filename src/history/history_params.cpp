#include "history/history_params.hpp"

namespace balanceroute::history {

StoreLimits HistoryParams::limits() const {
  return {.max_age = std::chrono::days{max_age_days}, .max_bytes = max_size_mb << 20};
}

void HistoryParams::visit_params(ParamVisitor& visitor) {
  visitor.text({"path",
                "SQLite file for times, counts and keyed hashes of finished requests, never content (docs/history.md). "
                "Empty keeps no history."},
               path);
  visitor.integer({"max_age_days", "Days after which a request is taken out of it."}, max_age_days, {1, 3650});
  visitor.integer({"max_size_mb", "Largest size of the file in MiB; the oldest requests make room."}, max_size_mb,
                  {1, 1'048'576});
  visitor.integer({"warm_start_requests",
                   "Finished requests of a fleet that its policy learns from at a start, the latest ones; 0 learns "
                   "from none."},
                  warm_start_requests, {0, 10'000'000});
}

}  // namespace balanceroute::history
