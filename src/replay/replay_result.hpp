// replay_result.hpp - what a replay saw from the client's side.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/units.hpp"
#include "replay/fault.hpp"
#include "stats/length_buckets.hpp"
#include "stats/quantiles.hpp"

namespace balanceroute::replay {

// ReplayPart tells what became of some of the requests.
//   Times  count from when a request was due by the trace, so that a client that falls behind hides nothing.
struct ReplayPart {
  std::int64_t requests = 0;
  std::int64_t completed = 0;
  std::int64_t errors = 0;      // requests that failed
  std::int64_t unfinished = 0;  // still running when the replay ended them; their first tokens count, nothing else
  std::int64_t left = 0;        // their clients left, as they were to; counted like the unfinished
  std::int64_t retries = 0;
  std::int64_t tokens = 0;             // of completed requests
  double throughput_tokens_per_s = 0;  // over the time from the first request to the last answer's end, of any part
  Summary ttft_ms{};                   // streams only, as is TPOT
  Summary tpot_ms{};                   // answers of more than one token
  Summary e2e_ms{};
  std::array<std::int64_t, kFaultKinds> errors_by_kind{};
};

// By the lengths that the trace states.
using PartsByLength = std::array<ReplayPart, kLengthBuckets>;

struct ReplayResult : ReplayPart {
  PartsByLength by_prompt{};
  PartsByLength by_output{};
  // How long after they were due requests were sent: what this client and its machine cost.
  Summary send_late_ms{};
  std::int64_t late_sends = 0;  // by more than kLateMs
  // Prompts of the completed requests whose answers told their length: by the trace, and as the server counted them.
  Tokens prompt_tokens_stated{0};
  Tokens prompt_tokens_counted{0};
  std::vector<std::string> first_errors{};  // a few, for a person

  static constexpr double kLateMs = 10;
  // The share of late sends above which the figures are this client's as much as the server's.
  static constexpr double kLateShare = 0.01;
  [[nodiscard]] bool client_was_late() const {
    return static_cast<double>(late_sends) > kLateShare * static_cast<double>(requests);
  }
};

[[nodiscard]] std::string to_json(const ReplayResult& result);
// Aligned columns: the whole first, then by prompt and by output length; below, what went wrong.
[[nodiscard]] std::string to_table(const ReplayResult& result);

}  // namespace balanceroute::replay
