// fallback.hpp - when a fleet's policy gives way to a simpler one, and when it decides again.
//
// Pure: it is told what has been seen, and when, and says which policy shall decide. Who obeys is fleet.cpp.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/params.hpp"
#include "net/clock.hpp"
#include "predict/calibration.hpp"

namespace balanceroute::proxy {

struct FallbackParams {
  bool enabled = true;
  double drift_window_ms = 60'000;
  std::int64_t drift_outcomes = 100;
  double drift_margin = 0.1;
  double slow_round_ms = 5;
  std::int64_t slow_rounds = 3;
  double rest_ms = 60'000;
  double longest_rest_ms = 3'600'000;
  double mirror_share = 0.25;
  double mirror_after_ms = 30'000;

  void visit_params(ParamVisitor& visitor);
};

// Why a policy gives way, from the mildest to the gravest.
enum class FallbackCause : std::uint8_t {
  drift,         // its predictor is worse than no prediction: to br_0
  policy_error,  // it chose what cannot be, or threw: to least_tokens
  slow_rounds,   // its rounds are too slow: to least_tokens
  mirror         // the ledger does not fit what engines say: to round_robin
};
inline constexpr std::array kFallbackCauses{FallbackCause::drift, FallbackCause::policy_error,
                                            FallbackCause::slow_rounds, FallbackCause::mirror};

[[nodiscard]] std::string_view to_string(FallbackCause cause);
// What decides instead; empty if `policy` is no better than that anyway.
[[nodiscard]] std::string_view simpler_policy(FallbackCause cause, std::string_view policy);

// How things stand.
struct FallbackStatus {
  struct Cause {
    bool holds = false;
    std::uint64_t times = 0;
  };
  std::string instead{};  // the policy that decides instead; empty: none
  std::array<Cause, kFallbackCauses.size()> causes{};
};

// The names of those that hold, from the mildest to the gravest.
[[nodiscard]] std::vector<std::string_view> causes_in_force(const FallbackStatus& status);

// What has been seen of a fleet so far; counters never go back.
struct PolicySigns {
  std::uint64_t policy_errors = 0;
  std::uint64_t slow_rounds = 0;
  std::optional<Calibration> predictions;  // of the policy that was chosen, whether or not it decides now
  double mirror_share = 0;                 // of the workers, those whose ledger does not fit their engine
};

// Fallback holds the causes that are in force.
//   Drift    a window of `drift_window_ms` and `drift_outcomes` in which the predictor's Brier score was worse than a
//            constant's by `drift_margin` of it and 0.01. It ends with a window in which it was no worse, but for
//            0.005: the predictor goes on learning while another policy decides.
//   Errors   one error, or `slow_rounds` rounds above `slow_round_ms` within a minute. The policy decides again after
//            `rest_ms`, and after twice as long each time if that does not go well.
//   Mirror   `mirror_share` of the workers for `mirror_after_ms`; it ends when they have been fewer for as long.
//   Threads  not synchronised: the deciding thread's.
class Fallback {
 public:
  // Of a policy that begins now.
  Fallback(const FallbackParams& params, net::TimePoint now) : params_{params} { reset(now, {}); }

  void set(const FallbackParams& params) { params_ = params; }
  // Another policy was chosen: what has been seen so far says nothing of it.
  void reset(net::TimePoint now, const PolicySigns& signs);
  void observe(net::TimePoint now, const PolicySigns& signs);

  // The gravest cause in force.
  [[nodiscard]] std::optional<FallbackCause> cause() const;
  [[nodiscard]] bool holds(FallbackCause cause) const { return causes_[index(cause)].holds; }
  // How often it came into force.
  [[nodiscard]] std::uint64_t times(FallbackCause cause) const { return causes_[index(cause)].times; }

 private:
  struct State {
    bool holds = false;
    std::uint64_t times = 0;
  };
  struct Count {
    net::TimePoint at;
    std::uint64_t slow_rounds;
  };

  static std::size_t index(FallbackCause cause) { return static_cast<std::size_t>(cause); }
  void set(FallbackCause cause, bool holds);
  void watch_predictions(net::TimePoint now, const std::optional<Calibration>& predictions);
  void watch_rounds(net::TimePoint now, const PolicySigns& signs);
  void watch_mirror(net::TimePoint now, double share);
  void rest(net::TimePoint now, FallbackCause cause);
  void take_up(net::TimePoint now, const PolicySigns& signs);

  FallbackParams params_;
  std::array<State, kFallbackCauses.size()> causes_{};
  Calibration window_;  // as it was when the window began
  net::TimePoint window_since_{};
  std::uint64_t errors_ = 0;  // seen before
  std::deque<Count> rounds_;  // of the last minute, oldest first
  net::TimePoint rest_until_ = net::kNever;
  net::TimePoint decides_since_{};
  std::int64_t rests_ = 0;                        // in a row
  std::optional<net::TimePoint> mirror_changes_;  // since when the mirror says otherwise than holds
};

}  // namespace balanceroute::proxy
