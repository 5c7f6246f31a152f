// history_params.hpp - the settings of the history, declared once.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"
#include "history/store.hpp"

namespace balanceroute::history {

struct HistoryParams {
  std::string path;
  std::int64_t max_age_days = 30;
  std::int64_t max_size_mb = 1024;
  std::int64_t warm_start_requests = 50'000;

  [[nodiscard]] bool on() const { return !path.empty(); }
  [[nodiscard]] StoreLimits limits() const;
  void visit_params(ParamVisitor& visitor);
};

}  // namespace balanceroute::history
