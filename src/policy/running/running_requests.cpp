#include "policy/running/running_requests.hpp"

namespace balanceroute {

RunningRequests::Worker& RunningRequests::worker_at(GroupId group, WorkerId worker) {
  if (group.value() >= groups_.size()) groups_.resize(group.value() + 1);
  if (worker.value() >= workers_.size()) workers_.resize(worker.value() + 1);
  Worker& its = workers_[worker.value()];
  if (!its.known) {
    its.known = true;
    groups_[group.value()].workers.push_back(worker);
  }
  return its;
}

RunningRequests::Handle RunningRequests::take_entry() {
  if (unused_.empty()) {
    entries_.emplace_back();
    return static_cast<Handle>(entries_.size() - 1);
  }
  const Handle handle = unused_.back();
  unused_.pop_back();
  return handle;
}

std::optional<RunningRequests::Handle> RunningRequests::admitted(const Request& request, GroupId group,
                                                                 WorkerId worker) {
  if (index_.find(request.id)) return std::nullopt;
  Worker& its = worker_at(group, worker);
  const Handle handle = take_entry();
  index_.insert(request.id, handle);
  entries_[handle] = {.request = request,
                      .worker = worker.value(),
                      .group = group.value(),
                      .place = static_cast<std::uint32_t>(its.running.size()),
                      .age = request.generated,
                      .since = groups_[group.value()].clock};
  its.running.push_back(handle);
  return handle;
}

std::optional<RunningRequests::Handle> RunningRequests::aged(RequestId request, Tokens generated) {
  const auto handle = index_.find(request);
  if (!handle) return std::nullopt;
  Entry& entry = entries_[*handle];
  entry.age = generated;
  entry.since = clock(group(*handle));
  entry.grows = true;
  return handle;
}

std::optional<RunningRequests::Handle> RunningRequests::narrowed(RequestId request) {
  const auto handle = index_.find(request);
  if (handle) --entries_[*handle].request.sequences;
  return handle;
}

std::optional<RunningRequests::Handle> RunningRequests::left(RequestId request) {
  const auto handle = index_.find(request);
  if (!handle) return std::nullopt;
  const Entry& gone = entries_[*handle];
  std::vector<Handle>& running = workers_[gone.worker].running;
  entries_[running.back()].place = gone.place;
  running[gone.place] = running.back();
  running.pop_back();
  index_.erase(request);
  unused_.push_back(*handle);
  return handle;
}

void RunningRequests::stepped(GroupId group, Steps steps) {
  if (group.value() < groups_.size()) groups_[group.value()].clock += steps;
}

Tokens RunningRequests::age(Handle handle) const {
  const Entry& entry = entries_[handle];
  if (!entry.grows) return entry.age;
  return entry.age + Tokens{(clock(group(handle)) - entry.since).count()};
}

Steps RunningRequests::clock(GroupId group) const {
  return group.value() < groups_.size() ? groups_[group.value()].clock : Steps{0};
}

std::span<const WorkerId> RunningRequests::workers(GroupId group) const {
  if (group.value() >= groups_.size()) return {};
  return groups_[group.value()].workers;
}

std::span<const RunningRequests::Handle> RunningRequests::running_on(WorkerId worker) const {
  if (worker.value() >= workers_.size()) return {};
  return workers_[worker.value()].running;
}

std::span<const LifeSpan> RunningRequests::all_spans() {
  spans_.clear();
  for (const Worker& worker : workers_) {
    for (const Handle handle : worker.running) spans_.push_back({entries_[handle].request.generated, age(handle)});
  }
  return spans_;
}

}  // namespace balanceroute
