// endpoint_health.hpp - what probes and requests say about one engine's health.
//
// Pure: no sockets, no clock of its own. It serves for decode workers and for any other endpoint that takes requests.
#pragma once

#include <chrono>
#include <cstdint>
#include <string_view>

#include "net/clock.hpp"
#include "proxy/health_params.hpp"

namespace balanceroute::proxy {

// unseen: has not answered yet. up: takes work. held: can be reached, but failed its last requests. down: cannot be
// reached.
enum class HealthState : std::uint8_t { unseen, up, held, down };

enum class Evidence : std::uint8_t {
  probe_answered,
  probe_failed,         // refused, broken or answered by an error
  probe_late,           // no answer in time
  request_complete,     // an answer came to its end
  request_unreachable,  // no connection
  request_failed,       // broken off, too late, or an error of the engine
  rank_rejected         // the engine does not know the rank by the number that the settings give it
};

[[nodiscard]] std::string_view to_string(HealthState state);

// EndpointHealth is a circuit breaker with thresholds both ways.
//   Down     after `unhealthy_after` failed probes or connections in a row; up again after `healthy_after` good probes.
//   Held     after `hold_after` failed requests in a row, or one rejection of its rank; on trial when the time is over.
//   Trial    a failed request holds it for twice as long; `release_after` complete answers, or the time of the hold
//            without a failure, end it.
//   Probes   without them (interval 0) it begins up, and a down one is tried again as a held one is.
class EndpointHealth {
 public:
  explicit EndpointHealth(const HealthParams& params);

  // `lives`: a token of it was seen since the last look, so a probe that is only late says nothing.
  // Returns whether the state changed, or a trial ended.
  bool observe(Evidence evidence, net::TimePoint now, bool lives = false);
  // As time passes; whether the state changed.
  bool tick(net::TimePoint now);
  // When tick() may have something to do.
  [[nodiscard]] net::TimePoint due() const;
  // Other thresholds from now on.
  void set(const HealthParams& params) { params_ = params; }

  [[nodiscard]] HealthState state() const { return state_; }
  // Up, but the next failed request ends that.
  [[nodiscard]] bool on_trial() const { return state_ == HealthState::up && on_trial_; }
  // How often it was held back; it never goes back.
  [[nodiscard]] std::uint64_t times_held() const { return times_held_; }

 private:
  bool become(HealthState state);
  bool probe_answered();
  bool unreachable(net::TimePoint now);
  bool request_failed(net::TimePoint now);
  bool request_complete();
  bool end_trial();
  void hold_from(net::TimePoint now);
  [[nodiscard]] net::Duration hold() const;

  HealthParams params_;
  HealthState state_;
  std::int64_t good_probes_ = 0;        // in a row
  std::int64_t unreachable_ = 0;        // in a row
  std::int64_t failed_requests_ = 0;    // in a row
  std::int64_t holds_ = 0;              // in a row
  std::int64_t good_requests_ = 0;      // in a row, on trial
  net::TimePoint until_ = net::kNever;  // of a hold or a trial
  std::uint64_t times_held_ = 0;
  bool on_trial_ = false;
};

}  // namespace balanceroute::proxy
