#include "engine/group.hpp"

#include <algorithm>
#include <cassert>

namespace balanceroute::engine {

Group::Group(std::size_t workers, std::int64_t slots, Tokens kv_capacity, Tokens kv_block, const LoadModel& load_model,
             TokenPace pace)
    : load_{load_model},
      kv_{LoadModel::paged(kv_block)},
      workers_(workers),
      slots_{slots},
      kv_capacity_{kv_capacity},
      pace_{pace},
      lists_{2 * workers},
      step_loads_(workers) {
  assert(slots >= 1 && kv_capacity >= Tokens{1});
}

SequenceHandle Group::bind(std::size_t worker, const Sequence& sequence) {
  assert(worker < workers_.size());
  assert(sequence.age >= Tokens{0} && sequence.age < sequence.output);
  const auto index = allocate();
  Place& place = places_[index];
  place.sequence = sequence;
  place.worker = static_cast<std::uint32_t>(worker);
  place.state = State::queued;
  lists_.push_back(queue_list(worker), index);
  ++workers_[worker].queued;
  ++queued_;
  return handle_of(index);
}

bool Group::abort(SequenceHandle handle) {
  const auto index = handle.index_;
  if (index >= places_.size() || places_[index].generation != handle.generation_) return false;
  if (places_[index].state == State::running) {
    calendar_.cancel(index);
    vacate(index);
  } else {
    unqueue(index);
  }
  release(index);
  return true;
}

std::span<const SequenceMove> Group::leave() {
  due_.clear();
  moves_.clear();
  thrown_away_ = Tokens{0};
  for (; seen_ < clock_; seen_ += Steps{1}) calendar_.take_due(seen_ + Steps{1}, due_);
  for (const auto index : due_) {
    moves_.push_back(move_of(index));
    thrown_away_ += grown(places_[index]) - places_[index].sequence.output;
    vacate(index);
    release(index);
  }
  return moves_;
}

std::span<const SequenceMove> Group::enter() {
  moves_.clear();
  preempted_.clear();
  recomputed_.clear();
  for (std::size_t worker = 0; worker < workers_.size(); ++worker) {
    free_space(worker);
    while (workers_[worker].queued > 0 && workers_[worker].active < slots_ &&
           has_space(workers_[worker], lists_.front(queue_list(worker)))) {
      start(worker, lists_.front(queue_list(worker)));
    }
    step_loads_[worker] = workers_[worker].load;
  }
  envelope_ = step_loads_.empty() ? Tokens{0} : std::ranges::max(step_loads_);
  step_active_ = active_;
  step_growth_ = pace_.after(step_);
  return moves_;
}

void Group::advance() {
  for (Tokens left = pace_.after(step_); left > Tokens{0}; left -= Tokens{1}) tick();
  step_ += Steps{1};
}

// One token more.
void Group::tick() {
  for (Worker& worker : workers_) {
    worker.load += Tokens{worker.load_growth};
    worker.kv += Tokens{worker.kv_growth};
  }
  clock_ += Steps{1};
  turn_growth();
}

void Group::turn_growth() {
  load_.step(
      clock_, [this](std::uint32_t index) { return size(places_[index]); },
      [this](std::uint32_t index, const GrowthWatch::Turn& turn) {
        Worker& worker = workers_[places_[index].worker];
        worker.load += turn.jump;
        worker.load_growth += turn.bend;
      });
  kv_.step(
      clock_, [this](std::uint32_t index) { return next_size(places_[index]); },
      [this](std::uint32_t index, const GrowthWatch::Turn& turn) {
        Worker& worker = workers_[places_[index].worker];
        worker.kv += turn.jump;
        worker.kv_growth += turn.bend;
      });
}

SequenceMove Group::move_of(std::uint32_t index) const {
  return {handle_of(index), places_[index].sequence.id, places_[index].worker};
}

std::uint32_t Group::allocate() {
  if (free_places_.empty()) {
    places_.emplace_back();
    lists_.grow_to(places_.size());
    return static_cast<std::uint32_t>(places_.size() - 1);
  }
  const auto index = free_places_.back();
  free_places_.pop_back();
  return index;
}

void Group::release(std::uint32_t index) {
  places_[index].state = State::free;
  places_[index].preempted = false;
  ++places_[index].generation;
  free_places_.push_back(index);
}

// From the head of the FIFO into a slot.
void Group::start(std::size_t worker, std::uint32_t index) {
  unqueue(index);
  Place& place = places_[index];
  if (place.preempted) recompute(place);
  place.state = State::running;
  place.entered = clock_;
  lists_.push_back(running_list(worker), index);
  calendar_.schedule(index, clock_ + Steps{(place.sequence.output - place.sequence.age).count()});
  Worker& its = workers_[worker];
  its.load += load_.model().weight_of(size(place));
  its.load_growth += load_.begin(index, size(place), clock_);
  if (limited()) {
    its.kv += kv_.model().weight_of(next_size(place));
    its.kv_growth += kv_.begin(index, next_size(place), clock_);
  }
  ++its.active;
  ++active_;
  moves_.push_back(move_of(index));
}

void Group::recompute(Place& place) {
  place.preempted = false;
  if (recomputed_.empty() || recomputed_.back().worker != place.worker) recomputed_.push_back({.worker = place.worker});
  recomputed_.back().tokens += size(place);
}

// Whether the worker can hold what it runs and this sequence too, with what the coming step may bring.
bool Group::has_space(const Worker& worker, std::uint32_t index) const {
  return worker.active == 0 || !limited() ||
         worker.kv + kv_.model().weight_of(next_size(places_[index])) <= kv_capacity_;
}

void Group::free_space(std::size_t worker) {
  const Worker& its = workers_[worker];
  while (its.active > 1 && its.kv > kv_capacity_) preempt(lists_.back(running_list(worker)));
}

// Out of its slot, back to the front of the FIFO.
void Group::preempt(std::uint32_t index) {
  Place& place = places_[index];
  const Tokens age = generated(place);
  calendar_.cancel(index);
  vacate(index);
  place.sequence.age = age;
  place.state = State::queued;
  place.preempted = true;
  lists_.push_front(queue_list(place.worker), index);
  ++workers_[place.worker].queued;
  ++queued_;
  preempted_.push_back(move_of(index));
}

void Group::vacate(std::uint32_t index) {
  const Place& place = places_[index];
  Worker& worker = workers_[place.worker];
  lists_.erase(running_list(place.worker), index);
  worker.load -= load_.model().weight_of(size(place));
  worker.load_growth -= load_.end(index, size(place));
  if (limited()) {
    worker.kv -= kv_.model().weight_of(next_size(place));
    worker.kv_growth -= kv_.end(index, next_size(place));
  }
  --worker.active;
  --active_;
}

void Group::unqueue(std::uint32_t index) {
  const Place& place = places_[index];
  lists_.erase(queue_list(place.worker), index);
  --workers_[place.worker].queued;
  --queued_;
}

}  // namespace balanceroute::engine
