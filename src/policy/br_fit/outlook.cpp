#include "policy/br_fit/outlook.hpp"

#include <algorithm>
#include <cmath>

namespace balanceroute {

Outlook::Outlook(const BrFitParams& params)
    : refresh_{static_cast<std::size_t>(params.refresh_steps)},
      fractions_{params.horizon_near, params.horizon_middle, params.horizon_far} {}

double Outlook::survival(std::size_t point, std::int64_t age) const {
  const auto at = static_cast<std::size_t>(age);
  return at < ahead_[point].size() ? ahead_[point][at] : 1;
}

// The terms of one request at its counted age.
void Outlook::add(Handle handle, double sign) {
  const Request& request = running_.request(handle);
  const std::int64_t age = counted_age_[handle].count();
  Sums& sums = workers_[running_.worker(handle).value()].sums;
  const double weight = static_cast<double>(request.prompt.count() + age);
  const double times = sign * request.sequences;
  for (std::size_t k = 0; k < kPoints; ++k) {
    const double q = survival(k, age);
    sums.drift[k] += times * (q * (weight + horizons_[k]) - weight);
    sums.gone[k] += times * (1 - q);
  }
}

void Outlook::admitted(const Request& request, GroupId group, WorkerId worker) {
  const auto handle = running_.admitted(request, group, worker);
  if (!handle) return;
  if (worker.value() >= workers_.size()) workers_.resize(worker.value() + 1);
  if (*handle >= counted_age_.size()) counted_age_.resize(*handle + 1);
  counted_age_[*handle] = request.generated;
  workers_[worker.value()].prompts += static_cast<double>(request.prompt.count() * request.sequences);
  add(*handle, 1);
}

void Outlook::aged(RequestId request, Tokens generated) {
  running_.aged(request, generated);
}

void Outlook::narrowed(RequestId id, Tokens generated) {
  const auto handle = running_.find(id);
  if (!handle) return;
  const Request& request = running_.request(*handle);
  add(*handle, -1);
  running_.narrowed(id);
  add(*handle, 1);
  workers_[running_.worker(*handle).value()].prompts -= static_cast<double>(request.prompt.count());
  ended({request.generated, generated}, LeaseEnd::finished);
}

void Outlook::ended(const LifeSpan& span, LeaseEnd how) {
  if (how == LeaseEnd::cut) {
    lengths_.cut(span);
    return;
  }
  lengths_.ended(span);
  if (lengths_.ends() >= next_curve_) renew_curve();
}

void Outlook::left(RequestId id, Tokens generated, LeaseEnd how) {
  const auto handle = running_.left(id);
  if (!handle) return;
  const Request& request = running_.request(*handle);
  add(*handle, -1);
  workers_[running_.worker(*handle).value()].prompts -= static_cast<double>(request.prompt.count() * request.sequences);
  ended({request.generated, generated}, how);
}

void Outlook::stepped(GroupId group, Steps steps) {
  const auto before = static_cast<std::uint64_t>(running_.clock(group).count());
  running_.stepped(group, steps);
  const auto passed = std::min<std::uint64_t>(static_cast<std::uint64_t>(steps.count()), refresh_);
  for (const WorkerId worker : running_.workers(group)) {
    // Its turn is at the steps that equal its number modulo refresh_.
    const std::uint64_t until_turn = (worker.value() + refresh_ - (before + 1) % refresh_) % refresh_;
    if (until_turn < passed) renew(worker);
  }
}

void Outlook::renew(WorkerId worker) {
  workers_[worker.value()].sums = {};
  for (const Handle handle : running_.running_on(worker)) {
    counted_age_[handle] = running_.age(handle);
    add(handle, 1);
  }
}

void Outlook::renew_curve() {
  const std::size_t ends = lengths_.ends();
  next_curve_ = ends + std::max<std::size_t>(200, std::min<std::size_t>(ends / 2, 5000));
  lengths_.fill(curve_, running_.all_spans());
  for (std::size_t k = 0; k < kPoints; ++k) {
    horizons_[k] = std::round(fractions_[k] * curve_.mean_tokens());
    const Tokens horizon{static_cast<std::int64_t>(horizons_[k])};
    ahead_[k].clear();
    for (Tokens age{0}; age <= curve_.longest(); age += Tokens{1})
      ahead_[k].push_back(curve_.conditional(age, horizon));
  }
  for (std::uint32_t worker = 0; worker < workers_.size(); ++worker) renew(WorkerId{worker});
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
  const auto handle = running_.find(running);
  if (!handle) return std::nullopt;
  return running_.request(*handle).prompt;
}

double Outlook::running_prompts(WorkerId worker) const {
  return worker.value() < workers_.size() ? workers_[worker.value()].prompts : 0;
}

}  // namespace balanceroute
