// recent_requests.hpp - how long the requests of the last minute took, exactly, for a person who looks now.
//
// Leaves out what a scraper needs, which has a memory of its own: histograms in metrics.hpp.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <mutex>

#include "stats/quantiles.hpp"
#include "telemetry/request_times.hpp"

namespace balanceroute::telemetry {

// What the requests took that ended within kSpan, in seconds.
struct RecentTimes {
  Summary arrival_wait;
  Summary pool_wait;
  Summary ttft;
  Summary tpot;
  Summary e2e;
};

// RecentRequests keeps the times of the last requests.
//   Bounds   kKept requests; where more end within kSpan, the last ones speak for all.
//   Cost     add() O(1) under a lock; summary() sorts.
//   Threads  any.
class RecentRequests {
 public:
  static constexpr std::chrono::seconds kSpan{60};
  static constexpr std::size_t kKept = 2048;

  // `now` is the same monotonic clock's in every call.
  void add(std::chrono::nanoseconds now, const RequestTimes& times);
  [[nodiscard]] RecentTimes summary(std::chrono::nanoseconds now) const;

 private:
  struct Entry {
    std::chrono::nanoseconds ended;
    RequestTimes times;
  };

  mutable std::mutex mutex_;
  std::deque<Entry> entries_;
};

}  // namespace balanceroute::telemetry
