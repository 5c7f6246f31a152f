#include "proxy/endpoint_health.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

namespace balanceroute::proxy {

std::string_view to_string(HealthState state) {
  switch (state) {
    case HealthState::unseen:
      return "unseen";
    case HealthState::up:
      return "up";
    case HealthState::held:
      return "held";
    case HealthState::down:
      return "down";
  }
  std::unreachable();
}

EndpointHealth::EndpointHealth(const HealthParams& params)
    : params_{params}, state_{params.probes() ? HealthState::unseen : HealthState::up} {}

bool EndpointHealth::observe(Evidence evidence, net::TimePoint now, bool lives) {
  switch (evidence) {
    case Evidence::probe_answered:
      return probe_answered();
    case Evidence::probe_late:
      return !lives && unreachable(now);
    case Evidence::probe_failed:
    case Evidence::request_unreachable:
      return unreachable(now);
    case Evidence::request_failed:
      return request_failed(now);
    case Evidence::rank_rejected:
      failed_requests_ = params_.hold_after;
      return request_failed(now);
    case Evidence::request_complete:
      return request_complete();
  }
  std::unreachable();
}

bool EndpointHealth::request_complete() {
  unreachable_ = 0;
  failed_requests_ = 0;
  if (state_ == HealthState::up && !on_trial_) holds_ = 0;
  if (!on_trial()) return false;
  return ++good_requests_ >= params_.release_after && end_trial();
}

bool EndpointHealth::end_trial() {
  on_trial_ = false;
  holds_ = 0;
  until_ = net::kNever;
  return true;
}

bool EndpointHealth::tick(net::TimePoint now) {
  if (now < due()) return false;
  if (on_trial()) return end_trial();
  on_trial_ = true;
  until_ = now + hold();
  good_requests_ = 0;
  unreachable_ = 0;
  failed_requests_ = 0;
  return become(HealthState::up);
}

net::TimePoint EndpointHealth::due() const {
  const bool waits = state_ == HealthState::held || (state_ == HealthState::down && !params_.probes()) || on_trial();
  return waits ? until_ : net::kNever;
}

bool EndpointHealth::become(HealthState state) {
  return std::exchange(state_, state) != state;
}

bool EndpointHealth::probe_answered() {
  unreachable_ = 0;
  ++good_probes_;
  if (state_ == HealthState::unseen) return become(HealthState::up);
  if (state_ != HealthState::down || good_probes_ < params_.healthy_after) return false;
  on_trial_ = false;
  return become(HealthState::up);
}

bool EndpointHealth::unreachable(net::TimePoint now) {
  good_probes_ = 0;
  ++unreachable_;
  if (state_ == HealthState::unseen || state_ == HealthState::down) return false;
  const bool tried_without_probes = on_trial() && !params_.probes();
  if (unreachable_ < params_.unhealthy_after && !tried_without_probes) return false;
  failed_requests_ = 0;
  hold_from(now);
  return become(HealthState::down);
}

bool EndpointHealth::request_failed(net::TimePoint now) {
  unreachable_ = 0;  // there was a connection
  ++failed_requests_;
  if (state_ != HealthState::up || (failed_requests_ < params_.hold_after && !on_trial_)) return false;
  hold_from(now);
  ++times_held_;
  return become(HealthState::held);
}

// Twice as long as the last time, if it has not been released since.
net::Duration EndpointHealth::hold() const {
  const double longest = std::max(params_.hold_ms, params_.longest_hold_ms);
  const auto doublings = static_cast<int>(std::clamp<std::int64_t>(holds_ - 1, 0, 30));
  const double hold = std::min(longest, std::ldexp(params_.hold_ms, doublings));
  return std::chrono::duration_cast<net::Duration>(std::chrono::duration<double, std::milli>{hold});
}

void EndpointHealth::hold_from(net::TimePoint now) {
  ++holds_;
  on_trial_ = false;
  until_ = now + hold();
}

}  // namespace balanceroute::proxy
