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

SteppingGroup::SteppingGroup(net::IoThread& thread, std::size_t ranks, std::int64_t slots, StepTime step_time)
    : thread_{thread},
      model_{ranks, slots},
      step_time_{step_time},
      timer_{thread.timers()},
      step_tokens_(ranks),
      counters_(ranks) {}

SteppingGroup::Ticket SteppingGroup::submit(std::size_t rank, const engine::Sequence& sequence, TokenSink& sink) {
  const auto handle = model_.bind(rank, sequence);
  if (handle.index() >= entries_.size()) entries_.resize(handle.index() + 1);
  entries_[handle.index()] = {&sink, sequence.prompt};
  if (!stepping_) {
    stepping_ = true;
    timer_.arm(thread_.now(), [this] { begin_step(thread_.now()); });
  }
  return Ticket{*this, handle};
}

void SteppingGroup::begin_step(net::TimePoint start) {
  model_.leave();
  for (const auto& entered : model_.enter()) {
    const auto prompt = entries_[entered.handle.index()].prompt.count();
    counters_[entered.worker].prompt_tokens += prompt;
    step_tokens_[entered.worker] += prompt;
  }
  count_step_tokens();
  stepping_ = model_.active() > 0;
  if (!stepping_) return;
  step_length_ = step_time_.duration(model_.step_loads().envelope);
  planned_end_ = start + step_length_;
  timer_.arm(planned_end_, [this] { end_step(); });
}

void SteppingGroup::end_step() {
  const auto now = thread_.now();
  const auto lateness = now - planned_end_;
  const bool late = lateness > std::max<net::Duration>(std::chrono::milliseconds{1}, step_length_ / 10);
  measures_.loads.record(model_.step_loads().loads);
  measures_.late_steps += late ? 1 : 0;
  measures_.largest_lateness = std::max(measures_.largest_lateness, lateness);
  model_.advance();
  send_tokens();
  begin_step(late ? now : planned_end_);
}

// A rank without sequences does a dummy step, which engines do not count.
void SteppingGroup::count_step_tokens() {
  for (std::size_t rank = 0; rank < counters_.size(); ++rank) {
    const auto tokens = std::exchange(step_tokens_[rank], 0) + model_.active(rank);
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
