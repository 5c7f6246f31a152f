// replay_params.hpp - the settings of a replay.
#pragma once

#include <cstdint>
#include <string>

#include "core/params.hpp"
#include "replay/request_text.hpp"

namespace balanceroute::replay {

struct ReplayParams {
  std::string url;
  std::string trace;
  bool skip_bad_rows = false;
  double speed = 1;
  double rate_per_s = 0;
  std::int64_t limit = 0;
  std::string route = "completions";
  bool stream = true;
  std::string length_member = "exact";
  std::int64_t warm_requests = 0;
  std::string model;
  std::string api_key;
  bool probe = true;
  std::int64_t retries = 2;
  double request_timeout_s = 600;
  double drain_s = 600;
  double leave_share = 0;
  double leave_within_s = 5;
  std::int64_t seed = 1;

  void visit_params(ParamVisitor& visitor);
  [[nodiscard]] Route chosen_route() const;
  [[nodiscard]] LengthMember chosen_length_member() const;
};

}  // namespace balanceroute::replay
