// statistics.hpp - the figures of a trace that decide how much load it is to a fleet.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <span>

#include "core/load_model.hpp"
#include "trace/trace.hpp"

namespace balanceroute::trace {

// Means over requests, in tokens, but for the last.
struct LengthStatistics {
  std::int64_t requests = 0;
  double mean_prompt = 0;
  double mean_output = 0;
  double mean_squared_output = 0;
  // Mean load of a busy slot. A slot is seen for as long as its request lasts, so long outputs weigh more:
  // sum(s*o + o*(o-1)/2) / sum(o) over prompts s and outputs o, where a sequence's load is its tokens.
  double busy_slot_weight = 0;
  double busy_slot_kv = 0;  // the same of KV space
};

// All zero for no requests.
[[nodiscard]] LengthStatistics length_statistics(std::span<const TraceRequest> requests, const LoadModel& load = {},
                                                 Tokens kv_block = Tokens{1});

// Arrivals a second between the first request and the last; zero when they span no time.
[[nodiscard]] double arrival_rate(std::span<const TraceRequest> requests);

// A fleet as the capacity formula sees it: perfectly balanced, all slots busy that have KV space.
struct FleetShape {
  std::int64_t workers = 1;
  std::int64_t slots = 1;  // of one worker
  double fixed_ms = 0;     // step time = fixed + per_token * load of a worker
  double per_token_ms = 0;
  double tokens_per_step = 1;                                    // of each sequence
  double kv_capacity = std::numeric_limits<double>::infinity();  // tokens of one worker
  std::function<double(double)> measured_ms{};  // step time by load, in the line's place; never falling

  [[nodiscard]] double step_ms(double load) const {
    return measured_ms ? measured_ms(load) : fixed_ms + per_token_ms * load;
  }
  // That a sequence needs for so many tokens, on average: its last step is filled by half.
  [[nodiscard]] double steps_for(double tokens) const { return (tokens + (tokens_per_step - 1) / 2) / tokens_per_step; }
};

// Requests a second that the fleet finishes with every slot always busy and all loads equal:
// G*B / (n * T(B*w)), n being the steps of a mean output, as many as it has tokens where a step brings one, and T the
// time of a step, fixed + per_token*load; B is no more than the KV space has room for, kv_capacity over the mean KV
// space of a busy slot. True load is the arrival rate over this.
[[nodiscard]] double capacity_per_second(const LengthStatistics& lengths, const FleetShape& fleet);

// Sequences that run on a worker, on average, at so many arrivals a second if all loads are equal: the n at which a
// worker's share of the arrivals finishes in steps of n sequences, n = rate/G * steps * T(n*w), the least such, or
// all slots if that is more than there are.
[[nodiscard]] double balanced_active(const LengthStatistics& lengths, const FleetShape& fleet, double rate_per_second);

}  // namespace balanceroute::trace
