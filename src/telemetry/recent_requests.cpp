#include "telemetry/recent_requests.hpp"

#include <utility>
#include <vector>

namespace balanceroute::telemetry {

void RecentRequests::add(std::chrono::nanoseconds now, const RequestTimes& times) {
  const std::scoped_lock lock{mutex_};
  if (entries_.size() == kKept) entries_.pop_front();
  entries_.push_back({now, times});
}

RecentTimes RecentRequests::summary(std::chrono::nanoseconds now) const {
  std::vector<RequestTimes> recent;
  {
    const std::scoped_lock lock{mutex_};
    for (const Entry& entry : entries_) {
      if (entry.ended + kSpan >= now) recent.push_back(entry.times);
    }
  }
  const auto of = [&recent](double RequestTimes::* member) {
    std::vector<double> values;
    for (const RequestTimes& times : recent) {
      if (times.*member >= 0) values.push_back(times.*member);
    }
    return summarize(std::move(values));
  };
  return {.arrival_wait = of(&RequestTimes::arrival_wait),
          .pool_wait = of(&RequestTimes::pool_wait),
          .ttft = of(&RequestTimes::ttft),
          .tpot = of(&RequestTimes::tpot),
          .e2e = of(&RequestTimes::e2e)};
}

}  // namespace balanceroute::telemetry
