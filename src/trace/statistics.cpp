#include "trace/statistics.hpp"

#include <algorithm>
#include <cassert>
#include <chrono>

namespace balanceroute::trace {
namespace {

// Slots of a worker that can be busy at once, on average.
double usable_slots(const LengthStatistics& lengths, const FleetShape& fleet) {
  return std::min(static_cast<double>(fleet.slots), fleet.kv_capacity / lengths.busy_slot_kv);
}

// Sum of a request's weights over the steps of its output.
double token_steps(const TraceRequest& request, const LoadModel& model) {
  double sum = 0;
  Tokens size = request.prompt;
  for (Tokens left = request.output; left > Tokens{0};) {
    const Growth growth = model.growth_from(size);
    const Tokens stretch = std::min(left, Tokens{growth.lasts.count()});
    const auto steps = static_cast<double>(stretch.count());
    sum += static_cast<double>(model.weight_of(size).count()) * steps +
           static_cast<double>(growth.per_step) * (steps * (steps - 1) / 2);
    size += stretch;
    left -= stretch;
  }
  return sum;
}

// From below, by steps that end within the slots: n -> steps_per_ms * T(n*w) rises with n.
double least_fixed_point(const LengthStatistics& lengths, const FleetShape& fleet, double steps_per_ms, double slots) {
  constexpr int kMostTurns = 100'000;
  double active = 0;
  for (int turn = 0; turn < kMostTurns; ++turn) {
    const double next = steps_per_ms * fleet.step_ms(active * lengths.busy_slot_weight);
    if (next >= slots) return slots;
    if (next - active < 1e-9) break;
    active = next;
  }
  return active;
}

}  // namespace

LengthStatistics length_statistics(std::span<const TraceRequest> requests, const LoadModel& load, Tokens kv_block) {
  if (requests.empty()) return {};
  double prompts = 0;
  double outputs = 0;
  double squares = 0;
  double weights = 0;
  double held = 0;
  const LoadModel kv = LoadModel::paged(kv_block);
  for (const auto& request : requests) {
    const auto prompt = static_cast<double>(request.prompt.count());
    const auto output = static_cast<double>(request.output.count());
    prompts += prompt;
    outputs += output;
    squares += output * output;
    weights += token_steps(request, load);
    held += token_steps(request, kv);
  }
  const auto count = static_cast<double>(requests.size());
  return {.requests = std::ssize(requests),
          .mean_prompt = prompts / count,
          .mean_output = outputs / count,
          .mean_squared_output = squares / count,
          .busy_slot_weight = weights / outputs,
          .busy_slot_kv = held / outputs};
}

double arrival_rate(std::span<const TraceRequest> requests) {
  if (requests.empty()) return 0;
  const std::chrono::duration<double> span = requests.back().arrival - requests.front().arrival;
  return span.count() > 0 ? static_cast<double>(requests.size() - 1) / span.count() : 0;
}

double capacity_per_second(const LengthStatistics& lengths, const FleetShape& fleet) {
  assert(lengths.mean_output > 0);
  const double slots = usable_slots(lengths, fleet);
  const double step_ms = fleet.step_ms(slots * lengths.busy_slot_weight);
  return static_cast<double>(fleet.workers) * slots / (fleet.steps_for(lengths.mean_output) * step_ms / 1e3);
}

double balanced_active(const LengthStatistics& lengths, const FleetShape& fleet, double rate_per_second) {
  // Steps that the sequences of one worker need in a millisecond, all together.
  const double steps_per_ms =
      rate_per_second / static_cast<double>(fleet.workers) * fleet.steps_for(lengths.mean_output) / 1e3;
  const double slots = usable_slots(lengths, fleet);
  if (fleet.measured_ms) return least_fixed_point(lengths, fleet, steps_per_ms, slots);
  const double left = 1 - steps_per_ms * fleet.per_token_ms * lengths.busy_slot_weight;
  return left > 0 ? std::min(slots, steps_per_ms * fleet.fixed_ms / left) : slots;
}

}  // namespace balanceroute::trace
