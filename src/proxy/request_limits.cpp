#include "proxy/request_limits.hpp"

#include <algorithm>

namespace balanceroute::proxy {

namespace {

constexpr net::Duration kMinute = std::chrono::minutes{1};

LimitReached reached(Limit limit, net::Duration wait) {
  return {.limit = limit,
          .retry_after = std::max(std::chrono::ceil<std::chrono::seconds>(wait), std::chrono::seconds{1})};
}

}  // namespace

std::string_view to_string(Limit limit) {
  return limit == Limit::max_requests ? "max_requests" : "requests_per_minute";
}

std::expected<RequestLimits::Permit, LimitReached> RequestLimits::admit(const ApiKeyParams& key, net::TimePoint now) {
  const std::scoped_lock lock{mutex_};
  Use& use = uses_[key.tenant.name];
  if (key.max_requests != ApiKeyParams::kNoLimit && use.in_flight >= key.max_requests) {
    return std::unexpected(reached(Limit::max_requests, net::Duration::zero()));
  }
  while (!use.begun.empty() && use.begun.front() <= now - kMinute) use.begun.pop_front();
  if (key.requests_per_minute != ApiKeyParams::kNoLimit) {
    const auto most = static_cast<std::size_t>(key.requests_per_minute);
    // Of those in the window, the one whose end of it makes room; more than `most` are there if that was lowered.
    if (use.begun.size() >= most) {
      const net::TimePoint leaves = use.begun[use.begun.size() - most] + kMinute;
      return std::unexpected(reached(Limit::requests_per_minute, leaves - now));
    }
    use.begun.push_back(now);
  }
  ++use.in_flight;
  return Permit{*this, use};
}

void RequestLimits::ended(Use& use) {
  const std::scoped_lock lock{mutex_};
  --use.in_flight;
}

}  // namespace balanceroute::proxy
