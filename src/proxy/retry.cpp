#include "proxy/retry.hpp"

#include <algorithm>
#include <cmath>

namespace balanceroute::proxy {

void RetryParams::visit_params(ParamVisitor& visitor) {
  visitor.integer(
      {"most",
       "How often a request is tried again, on another worker if there is one, before anything of an answer "
       "has reached its client. One whose worker broke off or answered 500 is tried again once."},
      most, {0, 16});
  visitor.real({"budget_percent",
                "Requests of a fleet that may be tried again, of each hundred; those whose worker could not be reached "
                "are not counted."},
               budget_percent, {0, 100});
  visitor.integer({"reserve", "Requests that may be tried again beside them, so that quiet fleets have a budget too."},
                  reserve, {0, 100'000});
  visitor.real({"backoff_ms", "Longest wait before the first other try; twice as long before each further one."},
               backoff_ms, {0, 60'000});
  visitor.real({"longest_backoff_ms", "What that wait never exceeds."}, longest_backoff_ms, {0, 60'000});
  visitor.integers({"statuses", "Statuses of a worker after which another one is tried; all others are the client's."},
                   statuses, {400, 599});
}

Retry RetryParams::of_status(int status) const {
  if (std::ranges::find(statuses, status) == statuses.end()) return Retry::never;
  return status == 500 ? Retry::once : Retry::paid;
}

void RetryBudget::earn(const RetryParams& params) {
  const auto share = static_cast<std::int64_t>(std::llround(params.budget_percent * kParts / 100));
  const std::int64_t most = params.reserve * kParts;
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left < most && !left_.compare_exchange_weak(left, std::min(left + share, most), std::memory_order_relaxed)) {
  }
}

bool RetryBudget::spend() {
  std::int64_t left = left_.load(std::memory_order_relaxed);
  while (left >= kParts) {
    if (left_.compare_exchange_weak(left, left - kParts, std::memory_order_relaxed)) return true;
  }
  return false;
}

net::Duration retry_wait(const RetryParams& params, std::int64_t tries, Random& random) {
  const double doubled = std::ldexp(params.backoff_ms, static_cast<int>(std::min<std::int64_t>(tries, 30)));
  const double longest = std::min(doubled, params.longest_backoff_ms);
  const std::chrono::duration<double, std::milli> wait{random.uniform() * longest};
  return std::chrono::duration_cast<net::Duration>(wait);
}

}  // namespace balanceroute::proxy
