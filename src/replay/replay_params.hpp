// replay_params.hpp - the settings of a replay.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"

namespace balanceroute::replay {

struct ReplayParams {
  std::string url;
  std::string trace;
  bool skip_bad_rows = false;
  double speed = 1;
  double rate_per_s = 0;
  std::int64_t limit = 0;
  bool stream = true;
  std::string length_member = "max_tokens";
  std::int64_t warm_requests = 0;
  std::string model;
  std::string api_key;
  std::int64_t retries = 2;
  double request_timeout_s = 600;
  double drain_s = 600;
  std::int64_t seed = 1;

  void visit_params(ParamVisitor& visitor);
};

}  // namespace balanceroute::replay
