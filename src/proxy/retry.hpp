// retry.hpp - which requests are run once more, how often, and after what wait.
//
// Only what has not begun to answer its client may be. Leaves out how a request is run (generation.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

#include "core/params.hpp"
#include "core/random.hpp"
#include "net/clock.hpp"

namespace balanceroute::proxy {

// Whether another worker may do what one has not done.
enum class Retry : std::uint8_t {
  never,   // another one would say the same, or the time is over
  freely,  // the worker had nothing of the request
  paid,    // the worker has no room or no time for it now
  once     // the request itself may be what broke the worker
};

struct RetryParams {
  std::int64_t most = 3;
  double budget_percent = 10;
  std::int64_t reserve = 10;
  double backoff_ms = 10;
  double longest_backoff_ms = 1'000;
  std::vector<std::int64_t> statuses{408, 425, 429, 500, 502, 503, 504, 529};

  void visit_params(ParamVisitor& visitor);
  // What follows from a worker's status.
  [[nodiscard]] Retry of_status(int status) const;
};

// RetryBudget lets a share of a fleet's requests be run once more, and a few beside them: without a bound an outage
// would multiply the load of those that are left.
//   Threads  any.
class RetryBudget {
 public:
  explicit RetryBudget(const RetryParams& params) : left_{params.reserve * kParts} {}

  // A request has come. Quiet times save nothing up beyond the reserve.
  void earn(const RetryParams& params);
  // Whether one may be tried again, which it then is.
  [[nodiscard]] bool spend();

 private:
  static constexpr std::int64_t kParts = 1'000;

  std::atomic<std::int64_t> left_;  // in parts of a try
};

// The wait before another try, of which `tries` have been: anything up to a bound that doubles, so that requests that
// failed together do not come back together.
[[nodiscard]] net::Duration retry_wait(const RetryParams& params, std::int64_t tries, Random& random);

}  // namespace balanceroute::proxy
