#include "sim/simulation.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "core/envelope.hpp"

namespace balanceroute::sim {

Simulation::Simulation(const Fleet& fleet, std::unique_ptr<Policy> policy, RequestStream stream, std::uint64_t seed)
    : fleet_{fleet},
      stream_{std::move(stream)},
      router_{"simulated", std::move(policy), seed},
      meter_{fleet},
      idle_groups_{fleet.groups} {
  groups_.reserve(fleet.groups);
  for (std::size_t i = 0; i < fleet.groups; ++i) {
    const std::string name = std::to_string(i);
    const GroupId id = router_.add_group(name);
    for (std::size_t worker = 0; worker < fleet.workers; ++worker) {
      const auto added = router_.add_worker(id, name, static_cast<std::int32_t>(worker), fleet.slots);
      assert(added);
    }
    groups_.emplace_back(id, fleet.workers, fleet.slots);
  }
}

void Simulation::warm_up(std::span<const trace::TraceRequest> trace, const trace::StationaryLaw& law, std::size_t count,
                         Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t worker = i % fleet_.all_workers();
    Group& group = groups_[worker / fleet_.workers];
    const std::size_t position = worker % fleet_.workers;
    const auto [index, age] = law.draw(random);
    const engine::Sequence sequence{.id = RequestId{stream_.size() + i},  // behind those that arrive
                                    .prompt = trace[index].prompt,
                                    .output = trace[index].output,
                                    .age = age};
    auto lease = router_.adopt(router_.ledger().view(group.id).workers[position],
                               {.id = sequence.id, .prompt = sequence.prompt, .generated = age});
    assert(lease);
    hold(group, position, sequence, {.lease = *std::move(lease), .output = sequence.output});
    if (group.wake == kNever) --idle_groups_;
    group.wake = Nanoseconds{0};
  }
}

void Simulation::hold(Group& group, std::size_t worker, const engine::Sequence& sequence, Running running) {
  const std::size_t index = group.engine.bind(worker, sequence).index();
  if (index >= group.running.size()) group.running.resize(index + 1);
  group.running[index] = std::move(running);
}

RunResult Simulation::run() {
  while (step()) {
  }
  return result();
}

std::optional<SimulatedStep> Simulation::step() {
  while (!stream_.done()) {
    Group& group = next_group();
    const Nanoseconds now = group.wake;
    if (idle_groups_ > 0 && stream_.next().at < now) {
      take_arrivals(stream_.next().at);
      continue;
    }
    if (group.stepping) {
      end_step(group);
    } else {
      end_idling(group, now);
    }
    take_arrivals(now);
    if (stream_.done()) break;
    admit(group, now);
    if (begin_step(group, now)) {
      return SimulatedStep{
          .group = group.id.value(), .start = now, .duration = group.wake - now, .loads = group.engine.step_loads()};
    }
  }
  return std::nullopt;
}

// The group that acts first; of several at the same moment the one with the least load per slot.
Simulation::Group& Simulation::next_group() {
  Group* first = &groups_.front();
  for (Group& group : std::span{groups_}.subspan(1)) {
    const bool sooner = group.wake < first->wake;
    const bool tie = group.wake == first->wake && group.wake != kNever;
    if (sooner || (tie && load(group) < load(*first))) first = &group;
  }
  return *first;
}

// All groups have as many slots, so this orders them by load per slot too.
Tokens Simulation::load(const Group& group) const {
  return total_load(router_.ledger().view(group.id).loads);
}

// Everything that has arrived is seen; an idle group looks at once.
void Simulation::take_arrivals(Nanoseconds now) {
  if (stream_.next().at > now) return;
  for (; !stream_.done() && stream_.next().at <= now; stream_.pop()) submit(stream_.next());
  for (Group& group : groups_) {
    if (group.wake == kNever) group.wake = now;
    if (stream_.done() && !group.stepping) end_idling(group, now);
  }
  idle_groups_ = 0;
}

void Simulation::submit(const Arrival& arrival) {
  const auto submitted = router_.submit({.id = waiting_.add(arrival), .prompt = arrival.prompt});
  assert(submitted);
  const std::uint64_t seen = stream_.taken() + 1;
  if (seen == before_window() + 1) window_start_ = arrival.at;
  if (seen == before_second_half() + 1) meter_.enter_half(1);
}

void Simulation::end_idling(Group& group, Nanoseconds now) {
  if (measuring()) meter_.idle(now - std::max(group.idle_since, window_start_));
  group.idle_since = now;
}

void Simulation::end_step(Group& group) {
  const Nanoseconds now = group.wake;
  group.engine.advance();
  router_.advance(group.id, Steps{1});
  for (const engine::SequenceMove& left : group.engine.leave()) {
    Running& running = group.running[left.handle.index()];
    running.lease.finish(running.output);
    if (!running.timed || !group.measured) continue;
    meter_.finished(now - running.first_token, running.output - Tokens{1});
  }
}

void Simulation::admit(Group& group, Nanoseconds now) {
  for (Admission& admission : router_.round(group.id)) {
    const Arrival arrival = waiting_.take(admission.request.id);
    if (measuring()) meter_.admitted(now - arrival.at, admission.stage == Stage::overdue);
    hold(group, *router_.ledger().position(admission.worker),
         {.id = admission.request.id, .prompt = arrival.prompt, .output = arrival.output},
         {.lease = std::move(admission.lease), .arrival = arrival.at, .output = arrival.output, .timed = true});
  }
}

// False if there is nothing to do.
bool Simulation::begin_step(Group& group, Nanoseconds now) {
  const auto entered = group.engine.enter();
  const engine::StepLoads loads = group.engine.step_loads();
  group.stepping = loads.active > 0;
  if (!group.stepping) {
    idle(group, now);
    return false;
  }
  const Nanoseconds duration = fleet_.step_time.duration(loads.envelope);
  group.wake = now + duration;
  group.measured = measuring();
  for (const engine::SequenceMove& move : entered) {
    Running& running = group.running[move.handle.index()];
    running.lease.started();
    running.first_token = group.wake;
    if (running.timed && group.measured) meter_.first_token(group.wake - running.arrival);
  }
  if (group.measured) meter_.step(loads, duration);
  return true;
}

void Simulation::idle(Group& group, Nanoseconds now) {
  group.idle_since = now;
  const Nanoseconds empty_step = fleet_.step_time.duration(Tokens{0});
  // A policy that gave nothing to an empty group, though requests wait, is asked again.
  const bool ask_again = !router_.pooled().empty() && empty_step > Nanoseconds{0};
  group.wake = ask_again ? now + empty_step : kNever;
  idle_groups_ += ask_again ? 0 : 1;
}

}  // namespace balanceroute::sim
