#include "sim/simulation.hpp"

#include <algorithm>
#include <cassert>
#include <string>
#include <utility>

#include "core/envelope.hpp"

namespace balanceroute::sim {
namespace {

// For a heap with the first one due at its front; of equals, the one that arrived first.
constexpr auto later = [](const auto& a, const auto& b) {
  return std::pair{a.due, a.sequence.id} > std::pair{b.due, b.sequence.id};
};

}  // namespace

Simulation::Simulation(const Fleet& fleet, std::unique_ptr<Policy> policy, RequestStream stream, std::uint64_t seed,
                       std::shared_ptr<TrueLengths> truth)
    : fleet_{fleet},
      truth_{std::move(truth)},
      intake_{std::move(stream), fleet.prefill},
      router_{"simulated",
              std::move(policy),
              seed,
              {.books = {.load_model = fleet.load_model, .kv_block = fleet.kv_block}, .max_wait = fleet.max_wait}},
      meter_{fleet},
      asleep_{fleet.groups} {
  groups_.reserve(fleet.groups);
  for (std::size_t i = 0; i < fleet.groups; ++i) {
    const std::string name = std::to_string(i);
    const GroupId id = router_.add_group(name);
    for (std::size_t worker = 0; worker < fleet.workers; ++worker) {
      const auto added =
          router_.add_worker(id, name, static_cast<std::int32_t>(worker), {fleet.slots, fleet.slots_ahead}, fleet.kv);
      assert(added);
    }
    groups_.emplace_back(id, fleet);
  }
}

void Simulation::warm_up(std::span<const trace::TraceRequest> trace, const trace::StationaryLaw& law, std::size_t count,
                         Random& random) {
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t worker = i % fleet_.all_workers();
    Group& group = groups_[worker / fleet_.workers];
    const std::size_t position = worker % fleet_.workers;
    const auto [index, age] = law.draw(random);
    const engine::Sequence sequence{.id = RequestId{intake_.size() + i},  // behind those that arrive
                                    .prompt = trace[index].prompt,
                                    .output = trace[index].output,
                                    .age = age};
    truth_->know(sequence.id, sequence.output);
    auto lease = router_.adopt(router_.ledger().view(group.id).workers[position],
                               {.id = sequence.id,
                                .prompt = sequence.prompt,
                                .generated = age,
                                .prompt_key = trace::prompt_key(trace[index])});
    if (!lease) {  // no KV space
      truth_->forget(sequence.id);
      continue;
    }
    place(group, position, sequence,
          {.lease = *std::move(lease), .lengths = {.prompt = sequence.prompt, .output = sequence.output}});
    group.wake = Nanoseconds{0};
  }
}

void Simulation::place(Group& group, std::size_t worker, const engine::Sequence& sequence, Running running) {
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
  while (!intake_.done()) {
    Group& group = next_group();
    const Nanoseconds now = group.wake;
    if (asleep_ > 0 && intake_.next() < now) {
      take_requests(intake_.next());
      continue;
    }
    if (group.asleep) {
      count_idle(group, now);
      wake_up(group);
    } else {
      end_step(group);
    }
    take_requests(now);
    if (intake_.done()) break;
    admit(group, now);
    take_handovers(group, now);
    if (begin_step(group, now)) {
      return SimulatedStep{.group = group.id.value(),
                           .start = now,
                           .duration = group.wake - now,
                           .measured = group.measured,
                           .loads = group.engine.step_loads()};
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

// Everything that has come by now is seen.
void Simulation::take_requests(Nanoseconds now) {
  bool some = false;
  while (!intake_.done() && intake_.next() <= now) {
    const Nanoseconds moment = intake_.next();
    const std::optional<Request> request = intake_.advance();
    note_arrival(moment);
    if (!request) continue;
    router_.set_now(moment);
    truth_->know(request->id, intake_.output_of(request->id));
    const auto submitted = router_.submit(*request);
    assert(submitted);
    some = true;
  }
  for (Group& group : groups_) {
    if (!group.asleep) continue;
    if (some) group.wake = now;
    if (intake_.done()) count_idle(group, now);
  }
}

// The measured window opens and passes its middle.
void Simulation::note_arrival(Nanoseconds now) {
  if (!measuring() && intake_.arrived() > before_window()) window_start_ = now;
  meter_.enter_half(intake_.arrived() > before_second_half() ? 1 : 0);
}

void Simulation::wake_up(Group& group) {
  group.asleep = false;
  --asleep_;
}

void Simulation::count_idle(Group& group, Nanoseconds now) {
  if (measuring()) meter_.idle(now - std::max(group.idle_since, *window_start_));
  group.idle_since = now;
}

void Simulation::end_step(Group& group) {
  const Nanoseconds now = group.wake;
  const Steps grown{group.engine.step_loads().growth.count()};
  group.engine.advance();
  router_.advance(group.id, grown);
  const auto leaving = group.engine.leave();
  if (group.measured) meter_.thrown_away(group.engine.thrown_away());
  for (const engine::SequenceMove& left : leaving) {
    Running& running = group.running[left.handle.index()];
    running.lease.finish(running.lengths.output);
    truth_->forget(left.id);
    if (!running.timed || !group.measured) continue;
    meter_.finished(now - running.first_token, running.lengths);
  }
}

void Simulation::admit(Group& group, Nanoseconds now) {
  router_.set_now(now);
  for (Admission& admission : router_.round(group.id)) {
    const PendingRequest request = intake_.admit(admission.request.id);
    const Arrival& arrival = request.arrival;
    const RequestLengths lengths{.prompt = arrival.prompt, .output = arrival.output};
    if (measuring())
      meter_.admitted(now - request.prefilled, admission.stage == Stage::overdue || admission.stage == Stage::late,
                      lengths);
    group.handovers.push_back(
        {.due = handed_over(request, now),
         .worker = *router_.ledger().position(admission.worker),
         .sequence = {.id = admission.request.id, .prompt = arrival.prompt, .output = arrival.output},
         .prefiller = request.prefiller,
         .running = {.lease = std::move(admission.lease), .arrival = arrival.at, .lengths = lengths, .timed = true}});
    std::ranges::push_heap(group.handovers, later);
  }
}

Nanoseconds Simulation::handed_over(const PendingRequest& request, Nanoseconds now) const {
  const bool bound_on_arrival = router_.policy().binding() == Binding::immediate;
  const Nanoseconds begins = bound_on_arrival ? request.prefilled : now;
  return std::max(now, begins + fleet_.admission_delay.duration(request.arrival.prompt));
}

void Simulation::take_handovers(Group& group, Nanoseconds now) {
  while (!group.handovers.empty() && group.handovers.front().due <= now) {
    std::ranges::pop_heap(group.handovers, later);
    Handover& done = group.handovers.back();
    intake_.pulled(done.prefiller, done.sequence.prompt, now);
    place(group, done.worker, done.sequence, std::move(done.running));
    group.handovers.pop_back();
  }
}

// False if there is nothing to do.
bool Simulation::begin_step(Group& group, Nanoseconds now) {
  const auto entered = group.engine.enter();
  const engine::StepLoads loads = group.engine.step_loads();
  if (loads.active == 0) {
    fall_asleep(group, now);
    return false;
  }
  const Nanoseconds duration = fleet_.step_duration(loads, group.engine.recomputed());
  group.wake = now + duration;
  group.measured = measuring();
  for (const engine::SequenceMove& move : entered) enter(group, move);
  if (group.measured) {
    meter_.step(loads, duration,
                {.preempted = group.engine.preempted().size(),
                 .recomputed = group.engine.recomputed(),
                 .waiting = router_.waiting()});
  }
  return true;
}

void Simulation::enter(Group& group, const engine::SequenceMove& move) {
  Running& running = group.running[move.handle.index()];
  if (running.entered) {  // it was preempted: the router counted on
    running.lease.progress(group.engine.generated(move.handle));
    return;
  }
  running.entered = true;
  running.lease.started();
  running.first_token = group.wake;
  if (running.timed && group.measured) meter_.first_token(group.wake - running.arrival);
}

void Simulation::fall_asleep(Group& group, Nanoseconds now) {
  group.asleep = true;
  ++asleep_;
  group.idle_since = now;
  group.wake = group.handovers.empty() ? kNever : group.handovers.front().due;
  // A policy that gave nothing to an empty group, though requests wait, is asked again.
  const Nanoseconds empty_step = fleet_.empty_step();
  if (!router_.pooled().empty() && empty_step > Nanoseconds{0}) group.wake = std::min(group.wake, now + empty_step);
}

}  // namespace balanceroute::sim
