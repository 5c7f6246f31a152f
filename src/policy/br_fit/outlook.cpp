#include "policy/br_fit/outlook.hpp"

#include <algorithm>
#include <cmath>

namespace balanceroute {

Outlook::Outlook(const BrFitParams& params)
    : refresh_{static_cast<std::size_t>(params.refresh_steps)},
      fractions_{params.horizon_near, params.horizon_middle, params.horizon_far} {}

std::int64_t Outlook::age_now(const Running& running) const {
  return running.grows ? running.age + groups_[workers_[running.worker].group].clock - running.since : running.age;
}

double Outlook::survival(std::size_t point, std::int64_t age) const {
  const auto at = static_cast<std::size_t>(age);
  return at < ahead_[point].size() ? ahead_[point][at] : 1;
}

// The terms of one request at its counted age.
void Outlook::add(Sums& sums, const Running& running, double sign) const {
  const double weight = static_cast<double>((running.request.prompt.count() + running.counted_age));
  const double times = sign * running.request.sequences;
  for (std::size_t k = 0; k < kPoints; ++k) {
    const double q = survival(k, running.counted_age);
    sums.drift[k] += times * (q * (weight + horizons_[k]) - weight);
    sums.gone[k] += times * (1 - q);
  }
}

Outlook::Worker& Outlook::worker_at(GroupId group, WorkerId worker) {
  if (group.value() >= groups_.size()) groups_.resize(group.value() + 1);
  if (worker.value() >= workers_.size()) workers_.resize(worker.value() + 1);
  std::vector<std::uint32_t>& members = groups_[group.value()].workers;
  if (std::ranges::find(members, worker.value()) == members.end()) {
    members.push_back(worker.value());
    workers_[worker.value()].group = group.value();
  }
  return workers_[worker.value()];
}

std::uint32_t Outlook::take_entry() {
  if (unused_.empty()) {
    entries_.emplace_back();
    return static_cast<std::uint32_t>(entries_.size() - 1);
  }
  const std::uint32_t index = unused_.back();
  unused_.pop_back();
  return index;
}

void Outlook::admitted(const Request& request, GroupId group, WorkerId worker) {
  Worker& its = worker_at(group, worker);
  const std::uint32_t index = take_entry();
  if (!index_.insert(request.id, index)) {
    unused_.push_back(index);
    return;
  }
  const std::int64_t age = request.generated.count();
  entries_[index] = {.request = request,
                     .worker = worker.value(),
                     .place = its.running.size(),
                     .age = age,
                     .since = groups_[group.value()].clock,
                     .counted_age = age};
  its.running.push_back(index);
  its.prompts += static_cast<double>(request.prompt.count() * request.sequences);
  add(its.sums, entries_[index], 1);
}

void Outlook::aged(RequestId request, Tokens generated) {
  const auto index = index_.find(request);
  if (!index) return;
  Running& running = entries_[*index];
  running.age = generated.count();
  running.since = groups_[workers_[running.worker].group].clock;
  running.grows = true;
}

void Outlook::left(RequestId request, Tokens generated, LeaseEnd how) {
  const auto index = index_.find(request);
  if (!index) return;
  const Running gone = entries_[*index];
  Worker& its = workers_[gone.worker];
  add(its.sums, gone, -1);
  its.prompts -= static_cast<double>(gone.request.prompt.count() * gone.request.sequences);
  entries_[its.running.back()].place = gone.place;
  its.running[gone.place] = its.running.back();
  its.running.pop_back();
  index_.erase(request);
  unused_.push_back(*index);

  const LifeSpan span{gone.request.generated, generated};
  if (how == LeaseEnd::cut) {
    lengths_.cut(span);
    return;
  }
  lengths_.ended(span);
  if (lengths_.ends() >= next_curve_) renew_curve();
}

void Outlook::stepped(GroupId id, Steps steps) {
  if (id.value() >= groups_.size()) return;
  Group& group = groups_[id.value()];
  const auto before = static_cast<std::uint64_t>(group.clock);
  group.clock += steps.count();
  const auto passed = std::min<std::uint64_t>(static_cast<std::uint64_t>(steps.count()), refresh_);
  for (const std::uint32_t worker : group.workers) {
    // Its turn is at the steps that equal its number modulo refresh_.
    const std::uint64_t until_turn = (worker + refresh_ - (before + 1) % refresh_) % refresh_;
    if (until_turn < passed) renew(workers_[worker]);
  }
}

void Outlook::renew(Worker& worker) {
  worker.sums = {};
  for (const std::uint32_t index : worker.running) {
    entries_[index].counted_age = age_now(entries_[index]);
    add(worker.sums, entries_[index], 1);
  }
}

void Outlook::renew_curve() {
  const std::size_t ends = lengths_.ends();
  next_curve_ = ends + std::max<std::size_t>(200, std::min<std::size_t>(ends / 2, 5000));
  spans_.clear();
  for (const Worker& worker : workers_) {
    for (const std::uint32_t index : worker.running) {
      spans_.push_back({entries_[index].request.generated, Tokens{age_now(entries_[index])}});
    }
  }
  lengths_.fill(curve_, spans_);
  for (std::size_t k = 0; k < kPoints; ++k) {
    horizons_[k] = std::round(fractions_[k] * curve_.mean_tokens());
    const Tokens horizon{static_cast<std::int64_t>(horizons_[k])};
    ahead_[k].clear();
    for (Tokens age{0}; age <= curve_.longest(); age += Tokens{1})
      ahead_[k].push_back(curve_.conditional(age, horizon));
  }
  for (Worker& worker : workers_) renew(worker);
}

Outlook::Row Outlook::entry_survival() const {
  Row row;
  for (std::size_t k = 0; k < kPoints; ++k) row[k] = survival(k, 0);
  return row;
}

Outlook::Sums Outlook::sums(WorkerId worker) const {
  return worker.value() < workers_.size() ? workers_[worker.value()].sums : Sums{};
}

std::optional<Tokens> Outlook::prompt_of(RequestId running) const {
  const auto index = index_.find(running);
  if (!index) return std::nullopt;
  return entries_[*index].request.prompt;
}

double Outlook::running_prompts(WorkerId worker) const {
  return worker.value() < workers_.size() ? workers_[worker.value()].prompts : 0;
}

}  // namespace balanceroute
