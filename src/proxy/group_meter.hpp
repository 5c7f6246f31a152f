// group_meter.hpp - what the steps of one group cost, as its streams show them.
//
// The load idle share needs only loads. The barrier idle share needs the price of a token too, which is learned from
// the group's own steps (stats/step_time_fit.hpp); until it is known the share is that of an engine whose steps take
// time for load alone, which is the most that it can be.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "core/units.hpp"
#include "proxy/step_trail.hpp"
#include "stats/step_time_fit.hpp"

namespace balanceroute::proxy {

// Where the price of a token in a step comes from.
enum class PriceSource : std::uint8_t { modelled, measured };

// GroupMeasures are sums over all steps; the ratio of two differences is the share of the time between.
struct GroupMeasures {
  double steps = 0;
  double tokens_read = 0;       // by the most loaded worker: the sum of envelopes
  double tokens_read_mean = 0;  // by a mean worker
  double seconds = 0;           // of steps whose time is known
  double idle_seconds = 0;      // of a mean worker in them
  // Of late; ratios of sums.
  double step_seconds = 0;
  double load_idle_fraction = 0;
  double barrier_idle_fraction = 0;
  PriceSource source = PriceSource::modelled;
  double fixed_ms = 0;  // of the learned line; both 0 until it is measured
  double per_token_ms = 0;
};

// GroupMeter adds up steps.
//   Late      what `of late` means: a step counts for half of what it did after kHalfLife more; for the time of a step,
//             which people want to see change, after kStepHalfLife.
//   Cost      see() O(workers), stepped() O(1).
//   Threads   not synchronised; the deciding thread's.
class GroupMeter {
 public:
  static constexpr double kHalfLife = 300;
  static constexpr double kStepHalfLife = 100;

  // The steps from here on read these loads, of so many sequences each.
  void see(std::span<const Tokens> loads, std::span<const std::int32_t> sequences);
  // The group took so many steps, in so many seconds; none if the time says nothing about steps.
  void stepped(Steps taken, std::optional<double> seconds);

  [[nodiscard]] GroupMeasures measures() const;
  // Blocks of at least kBlock steps whose time is known.
  [[nodiscard]] const StepTrail& trail() const { return trail_; }

 private:
  // Steps whose times are taken together: the streams show a step up to one step early or late.
  static constexpr double kBlock = 8;
  // More for a step was a pause of a group that had nothing to do. No shorter time is left out, however unusual: a
  // burst that is read late makes one sample long and the next ones short, and only together they are right.
  static constexpr double kLongestStepSeconds = 2;

  struct Sums {
    double envelope = 0;
    double mean = 0;
    double seconds = 0;
    double idle_seconds = 0;
  };

  [[nodiscard]] double idle_seconds_of(double seconds) const;
  void learn(double steps, double seconds);

  // Of the steps that come.
  double envelope_ = 0;
  double mean_ = 0;
  double total_ = 0;
  double sequences_ = 0;  // of the most loaded worker
  double all_sequences_ = 0;
  double steps_ = 0;
  Sums all_;
  Sums late_;
  StepTimeFit fit_;
  std::optional<StepTime> line_;
  // Of late, the steps whose time is known and that time: a ratio of sums, since single steps are seen early and late.
  double timed_steps_ = 0;
  double timed_seconds_ = 0;
  // The block that is being filled.
  double block_steps_ = 0;
  StepBlock block_;  // sums over its steps
  StepTrail trail_;
};

}  // namespace balanceroute::proxy
