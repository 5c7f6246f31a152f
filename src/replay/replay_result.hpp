// replay_result.hpp - what a replay saw from the client's side.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "stats/quantiles.hpp"

namespace balanceroute::replay {

// Times count from when a request was due by the trace, so that a client that falls behind hides nothing.
struct ReplayResult {
  std::int64_t requests = 0;
  std::int64_t completed = 0;
  std::int64_t errors = 0;      // requests that failed
  std::int64_t unfinished = 0;  // still running when the replay ended them; their first tokens count, nothing else
  std::int64_t retries = 0;
  std::int64_t tokens = 0;             // of completed requests
  double throughput_tokens_per_s = 0;  // over the time from the first request to the last answer's end
  Summary ttft_ms;                     // streams only, as is TPOT
  Summary tpot_ms;                     // answers of more than one token
  Summary e2e_ms;
  std::vector<std::string> first_errors;  // a few, for a person
};

[[nodiscard]] std::string to_json(const ReplayResult& result);

}  // namespace balanceroute::replay
