#include "policy/br_h/projection.hpp"

#include <algorithm>
#include <cassert>
#include <cmath>

namespace balanceroute {
namespace {

constexpr std::uint64_t kHalf = kCertain / 2;
constexpr int kChanceBits = 16;
static_assert(kCertain == 1U << kChanceBits);

std::uint64_t wrapped(std::int64_t value) {
  return static_cast<std::uint64_t>(value);
}

// Calls use(first in the ring, first in the row, count) for each of the at most two stretches without a wrap.
template <class Use>
void along_ring(std::size_t ring, std::size_t from, std::size_t count, const Use& use) {
  const std::size_t until_wrap = std::min(count, ring - from);
  use(from, 0, until_wrap);
  if (until_wrap < count) use(0, until_wrap, count - until_wrap);
}

}  // namespace

Projection::Projection(const ProjectionSettings& settings, std::unique_ptr<Predictor> predictor, const LoadModel& model)
    : settings_{settings},
      span_{static_cast<std::size_t>((settings.horizon + settings.refresh).count())},
      predictor_{std::move(predictor)},
      model_{model},
      check_{settings.horizon},
      fresh_(span_) {
  assert(settings.horizon >= Steps{1} && settings.refresh >= Steps{1} && predictor_ != nullptr);
}

void Projection::make_room(Handle handle, GroupId group, WorkerId worker) {
  if (handle >= terms_.size()) {
    terms_.resize(handle + 1);
    chances_.resize((handle + 1) * span_);
  }
  if (worker.value() >= sums_.size()) sums_.resize(worker.value() + 1);
  sums_[worker.value()].resize(span_);
  if (group.value() >= groups_.size()) groups_.resize(group.value() + 1);
  groups_[group.value()].turns.resize(static_cast<std::size_t>(settings_.refresh.count()));
}

void Projection::admitted(const Request& request, GroupId group, WorkerId worker) {
  const auto handle = running_.admitted(request, group, worker);
  if (!handle) return;
  make_room(*handle, group, worker);
  terms_[*handle].open = {};
  join_turn(*handle);
  predict(*handle);
  count(*handle, 1);
}

void Projection::aged(RequestId request, Tokens generated) {
  const auto known = running_.find(request);
  if (!known || (running_.grows(*known) && running_.age(*known) == generated)) return;
  count(*known, wrapped(-1));
  running_.aged(request, generated);
  predict(*known);
  count(*known, 1);
}

void Projection::narrowed(RequestId id, Tokens generated) {
  const auto handle = running_.find(id);
  if (!handle) return;
  count(*handle, wrapped(-1));
  running_.narrowed(id);
  predict(*handle);
  count(*handle, 1);
  learned(running_.request(*handle), generated, LeaseEnd::finished);
}

void Projection::learned(const Request& request, Tokens generated, LeaseEnd how) {
  predictor_->ended(request, generated, how);
  if (predictor_->wants_renewal()) predictor_->renew(running_.all_spans());
}

void Projection::left(RequestId id, Tokens generated, LeaseEnd how) {
  const auto handle = running_.find(id);
  if (!handle) return;
  count(*handle, wrapped(-1));
  leave_turn(*handle);
  check_.ended(terms_[*handle].open, generated, how);
  running_.left(id);
  learned(running_.request(*handle), generated, how);
}

void Projection::stepped(GroupId group, Steps steps) {
  const Steps before = running_.clock(group);
  running_.stepped(group, steps);
  const Steps now = running_.clock(group);
  if (now == before || group.value() >= groups_.size() || groups_[group.value()].turns.empty()) return;
  clear_passed(group, before, now);
  const Steps first = std::max(before + Steps{1}, now - settings_.refresh + Steps{1});
  for (Steps turn = first; turn <= now; turn += Steps{1}) {
    const auto whose = static_cast<std::size_t>(turn.count() % settings_.refresh.count());
    for (const Handle handle : groups_[group.value()].turns[whose]) refresh(handle);
  }
}

// The steps [from, to) are over; their places are free for steps that come into sight.
void Projection::clear_passed(GroupId group, Steps from, Steps to) {
  const auto passed = static_cast<std::size_t>((to - from).count());
  const std::size_t first = static_cast<std::size_t>(from.count()) % span_;
  for (const WorkerId worker : running_.workers(group)) {
    const std::span<Sums> sums{sums_[worker.value()]};
    along_ring(span_, first, std::min(passed, span_), [&](std::size_t place, std::size_t, std::size_t length) {
      std::ranges::fill(sums.subspan(place, length), Sums{});
    });
  }
}

// Where the request goes on as it was, its term is the old one with other chances: one pass instead of two.
void Projection::refresh(Handle handle) {
  const Term renewed = predicted(handle);
  const Term& old = terms_[handle];
  if (renewed.base == old.base && renewed.growth == old.growth) {
    exchange_chances(handle);
    terms_[handle] = renewed;
    std::ranges::copy(fresh_, chances(handle).begin());
    return;
  }
  count(handle, wrapped(-1));
  terms_[handle] = renewed;
  std::ranges::copy(fresh_, chances(handle).begin());
  count(handle, 1);
}

void Projection::predict(Handle handle) {
  terms_[handle] = predicted(handle);
  std::ranges::copy(fresh_, chances(handle).begin());
}

// Its term as of now, with the chances in fresh_.
Projection::Term Projection::predicted(Handle handle) {
  const Request& request = running_.request(handle);
  const Tokens age = running_.age(handle);
  const Steps now = running_.clock(running_.group(handle));
  fill_chances(handle, age);
  Term term = terms_[handle];
  const Growth growth = running_.grows(handle) ? model_.growth_from(request.prompt + age) : Growth{};
  term.growth = growth.per_step * request.sequences;
  term.base = model_.weight_at(request, age).count() - term.growth * now.count();
  term.since = now;
  return term;
}

void Projection::fill_chances(Handle handle, Tokens age) {
  const Request& request = running_.request(handle);
  const std::span<std::uint32_t> row{fresh_};
  double finish_chance = 0;
  if (settings_.shape == ProjectionShape::survival) {
    predictor_->survival(request, age, row);
    const auto staying = static_cast<double>(row[static_cast<std::size_t>(settings_.horizon.count())]);
    finish_chance = 1 - staying / kCertain;
  } else {
    const Prediction its = predictor_->predict(request, age, settings_.horizon);
    finish_chance = its.finish_chance;
    // To the nearest step, and at least one: it runs now. What is expected to outlast the horizon stays in sight.
    const std::int64_t end = std::llround(its.remaining(settings_.horizon));
    const bool outlasts = end >= settings_.horizon.count();
    const std::size_t staying = outlasts ? span_ : static_cast<std::size_t>(std::max<std::int64_t>(1, end));
    std::ranges::fill(row.first(staying), kCertain);
    std::ranges::fill(row.subspan(staying), 0);
  }
  if (predictor_->informed()) check_.predicted(terms_[handle].open, age, finish_chance);
}

// Adds the term of a request to the sums of its worker, or with sign -1 takes it out, from the present step on.
void Projection::count(Handle handle, std::uint64_t sign) {
  const Term& term = terms_[handle];
  const Steps now = running_.clock(running_.group(handle));
  const auto passed = static_cast<std::size_t>((now - term.since).count());
  if (passed >= span_) return;
  Sums* const sums = sums_[running_.worker(handle).value()].data();
  const std::uint64_t base = sign * wrapped(term.base);
  const std::uint64_t growth = sign * wrapped(term.growth);
  const std::uint32_t* const row = chances(handle).data() + passed;
  along_ring(span_, static_cast<std::size_t>(now.count()) % span_, span_ - passed,
             [&](std::size_t place, std::size_t from, std::size_t length) {
               for (std::size_t i = 0; i < length; ++i) {
                 sums[place + i].base += base * row[from + i];
                 sums[place + i].growth += growth * row[from + i];
               }
             });
}

// Puts the chances of fresh_, which begin now, in the place of the old ones.
void Projection::exchange_chances(Handle handle) {
  const Term& term = terms_[handle];
  const Steps now = running_.clock(running_.group(handle));
  const auto passed = static_cast<std::size_t>((now - term.since).count());
  const std::span<std::uint32_t> row = chances(handle);
  const std::size_t left = span_ - std::min(passed, span_);
  std::ranges::copy(row.last(left), row.begin());
  std::ranges::fill(row.subspan(left), 0);
  Sums* const sums = sums_[running_.worker(handle).value()].data();
  const std::uint64_t base = wrapped(term.base);
  const std::uint64_t growth = wrapped(term.growth);
  along_ring(span_, static_cast<std::size_t>(now.count()) % span_, span_,
             [&](std::size_t place, std::size_t from, std::size_t length) {
               for (std::size_t i = 0; i < length; ++i) {
                 const std::uint64_t change = std::uint64_t{fresh_[from + i]} - row[from + i];
                 sums[place + i].base += base * change;
                 sums[place + i].growth += growth * change;
               }
             });
}

// With the fewest, so that no step costs much more than another.
void Projection::join_turn(Handle handle) {
  std::vector<std::vector<Handle>>& turns = groups_[running_.group(handle).value()].turns;
  const auto fewest = std::ranges::min_element(turns, {}, &std::vector<Handle>::size);
  Term& term = terms_[handle];
  term.turn = static_cast<std::uint32_t>(fewest - turns.begin());
  term.place = static_cast<std::uint32_t>(fewest->size());
  fewest->push_back(handle);
}

void Projection::leave_turn(Handle handle) {
  const Term& term = terms_[handle];
  std::vector<Handle>& same = groups_[running_.group(handle).value()].turns[term.turn];
  same[term.place] = same.back();
  terms_[same.back()].place = term.place;
  same.pop_back();
}

void Projection::project(GroupId group, WorkerId worker, Tokens now, std::span<Tokens> loads) const {
  assert(loads.size() <= static_cast<std::size_t>(settings_.horizon.count()) + 1);
  if (loads.empty()) return;
  if (worker.value() >= sums_.size() || sums_[worker.value()].empty()) {
    std::ranges::fill(loads, now);
    return;
  }
  const Sums* const sums = sums_[worker.value()].data();
  const std::uint64_t clock = wrapped(running_.clock(group).count());
  const std::uint64_t moves = settings_.growth ? 1 : 0;
  along_ring(span_, static_cast<std::size_t>(clock % span_), loads.size(),
             [&](std::size_t place, std::size_t h, std::size_t length) {
               for (std::size_t i = 0; i < length; ++i) {
                 const std::uint64_t step = clock + moves * (h + i);
                 const std::uint64_t load = sums[place + i].base + step * sums[place + i].growth;
                 loads[h + i] = Tokens{static_cast<std::int64_t>(load + kHalf) >> kChanceBits};
               }
             });
  loads[0] = now;
}

}  // namespace balanceroute
