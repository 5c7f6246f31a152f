#include "emulator/stepping_group.hpp"

#include <algorithm>
#include <chrono>
#include <utility>

namespace balanceroute::emulator {

GroupMeasures& GroupMeasures::operator+=(const GroupMeasures& other) {
  loads += other.loads;
  late_steps += other.late_steps;
  largest_lateness = std::max(largest_lateness, other.largest_lateness);
  tokens += other.tokens;
  client_closes += other.client_closes;
  return *this;
}

SteppingGroup::Ticket::Ticket(Ticket&& other) noexcept
    : group_{std::exchange(other.group_, nullptr)}, handle_{other.handle_} {}

SteppingGroup::Ticket& SteppingGroup::Ticket::operator=(Ticket&& other) noexcept {
  std::swap(group_, other.group_);
  std::swap(handle_, other.handle_);
  return *this;
}

SteppingGroup::Ticket::~Ticket() {
  if (group_ != nullptr) group_->model_.abort(handle_);
}

SteppingGroup::SteppingGroup(net::IoThread& thread, const GroupSettings& settings)
    : thread_{thread},
      model_{settings.ranks, settings.slots, settings.kv_capacity, settings.kv_block},
      settings_{settings},
      timer_{thread.timers()},
      computed_(settings.ranks),
      counters_(settings.ranks) {}

SteppingGroup::Ticket SteppingGroup::submit(std::size_t rank, const engine::Sequence& sequence, Tokens to_compute,
                                            TokenSink& sink) {
  const auto handle = model_.bind(rank, sequence);
  if (handle.index() >= entries_.size()) entries_.resize(handle.index() + 1);
  entries_[handle.index()] = {&sink, sequence.prompt, to_compute, sequence.prompt};
  if (!stepping_) {
    stepping_ = true;
    timer_.arm(thread_.now(), [this] { begin_step(thread_.now()); });
  }
  return Ticket{*this, handle};
}

void SteppingGroup::begin_step(net::TimePoint start) {
  model_.leave();
  count_entries();
  give_way();
  count_step_tokens();
  stepping_ = model_.active() > 0;
  if (!stepping_) return;
  step_length_ = step_length();
  planned_end_ = start + step_length_;
  timer_.arm(planned_end_, [this] { end_step(); });
}

void SteppingGroup::count_entries() {
  std::ranges::fill(computed_, Tokens{0});
  for (const auto& entered : model_.enter()) {
    Entry& entry = entries_[entered.handle.index()];
    auto& counters = counters_[entered.worker];
    const Tokens computed = std::exchange(entry.to_compute, Tokens{0});
    computed_[entered.worker] += computed;
    // What a preempted sequence computes again is no prompt that came in.
    if (entry.prompt > Tokens{0}) counters.computed_prompt_tokens += computed.count();
    counters.prompt_tokens += std::exchange(entry.prompt, Tokens{0}).count();
  }
}

// Where KV ran out the youngest sequences were preempted; they go for good, or compute everything again when they
// enter the next time.
void SteppingGroup::give_way() {
  for (const auto& moved : model_.preempted()) {
    auto& entry = entries_[moved.handle.index()];
    if (settings_.recompute_stop) {
      ++counters_[moved.worker].recomputed_stops;
      model_.abort(moved.handle);
      entry.sink->on_recomputed();
    } else {
      ++counters_[moved.worker].preemptions;
      entry.to_compute = entry.context + model_.generated(moved.handle);
    }
  }
}

net::Duration SteppingGroup::step_length() const {
  const auto decode = settings_.step_time.duration(model_.step_loads().envelope);
  const Tokens most = std::ranges::max(computed_);
  return most > Tokens{0} ? decode + settings_.prefill_time.duration(most) : decode;
}

void SteppingGroup::end_step() {
  const auto now = thread_.now();
  const auto lateness = now - planned_end_;
  const bool late = lateness > std::max<net::Duration>(std::chrono::milliseconds{1}, step_length_ / 10);
  measures_.loads.record(model_.step_loads().loads);
  measures_.late_steps += late ? 1 : 0;
  measures_.largest_lateness = std::max(measures_.largest_lateness, lateness);
  remember_step(lateness);
  model_.advance();
  send_tokens();
  begin_step(late ? now : planned_end_);
}

void SteppingGroup::remember_step(net::Duration lateness) {
  // The oldest record is used again, with its memory.
  StepRecord record;
  if (steps_.size() >= settings_.step_log) {
    record = std::move(steps_.front());
    steps_.pop_front();
  }
  record.number = model_.step().count() + 1;
  record.start = planned_end_ - step_length_;
  record.length = step_length_;
  record.lateness = lateness;
  const auto loads = model_.step_loads().loads;
  record.loads.assign(loads.begin(), loads.end());
  record.active.clear();
  for (std::size_t rank = 0; rank < model_.workers(); ++rank) record.active.push_back(model_.active(rank));
  steps_.push_back(std::move(record));
}

// A rank without sequences does a dummy step, which engines do not count.
void SteppingGroup::count_step_tokens() {
  for (std::size_t rank = 0; rank < counters_.size(); ++rank) {
    const auto tokens = computed_[rank].count() + model_.active(rank);
    if (tokens > 0) counters_[rank].step_tokens.observe(tokens);
  }
}

void SteppingGroup::send_tokens() {
  for (std::size_t rank = 0; rank < counters_.size(); ++rank) {
    model_.for_each_running(rank, [this](const engine::RunningSequence& running) {
      entries_[running.handle.index()].sink->on_token(running.generated, running.finished());
    });
    counters_[rank].generated_tokens += model_.active(rank);
    measures_.tokens += model_.active(rank);
  }
}

}  // namespace balanceroute::emulator
