#include "policy/br_0_bypass/br_0_bypass.hpp"

#include <algorithm>

#include "policy/br_0/br_0.hpp"
#include "policy/immediate/workers.hpp"

namespace balanceroute {
namespace {

// Whether the request would be admitted at once: all that is queued there fits, and so does it.
bool has_room_now(const FleetView& fleet, const GroupView& group, std::size_t worker, const Candidate& candidate) {
  const Queued& ahead = queued_at(fleet, group, worker);
  return group.eligible[worker] != 0 && group.free_slots[worker] >= ahead.sequences + candidate.request.sequences &&
         group.kv_free[worker] >= ahead.kv + candidate.kv;
}

// What a group offers a request: how it compares with other groups, and whether its workers have room.
struct Offer {
  bool able = false;      // some worker can hold it
  bool room_now = false;  // some worker can admit it at once
  Tokens load{0};         // virtual, of the whole group
  std::int64_t slots = 0;

  [[nodiscard]] bool before(const Offer& other) const {
    if (room_now != other.room_now) return room_now;
    return load.count() * other.slots < other.load.count() * slots;
  }
};

Offer offer_of(const FleetView& fleet, const GroupView& group, const Candidate& candidate) {
  Offer offer;
  for (std::size_t i = 0; i < group.size(); ++i) {
    offer.load += load_at(fleet, group, i);
    offer.slots += group.slots[i];
    if (!can_hold(group, i, candidate)) continue;
    offer.able = true;
    offer.room_now = offer.room_now || has_room_now(fleet, group, i, candidate);
  }
  return offer;
}

Tokens virtual_envelope(const FleetView& fleet, const GroupView& group) {
  Tokens envelope{0};
  for (std::size_t i = 0; i < group.size(); ++i) envelope = std::max(envelope, load_at(fleet, group, i));
  return envelope;
}

// The one of highest F among those that can hold the request, or have room for it now.
WorkerId best_worker(const FleetView& fleet, const GroupView& group, const Candidate& candidate, bool room_now) {
  const Tokens envelope = virtual_envelope(fleet, group);
  std::size_t best = group.size();
  Tokens best_score{0};
  Tokens best_load{0};
  for (std::size_t i = 0; i < group.size(); ++i) {
    if (!can_hold(group, i, candidate) || (room_now && !has_room_now(fleet, group, i, candidate))) continue;
    const Tokens load = load_at(fleet, group, i);
    const Tokens score = br_0_score(candidate.weight, envelope - load, group.size());
    if (best < group.size() && (score < best_score || (score == best_score && load >= best_load))) continue;
    best = i;
    best_score = score;
    best_load = load;
  }
  return group.workers[best];
}

}  // namespace

std::optional<WorkerId> Br0Bypass::bind(const FleetView& fleet, const Candidate& candidate, Random&) {
  const GroupView* best = nullptr;
  Offer best_offer;
  for (const GroupView& group : fleet.groups) {
    const Offer offer = offer_of(fleet, group, candidate);
    if (!offer.able || (best != nullptr && !offer.before(best_offer))) continue;
    best = &group;
    best_offer = offer;
  }
  if (best == nullptr) return std::nullopt;
  return best_worker(fleet, *best, candidate, best_offer.room_now);
}

double Br0Bypass::score(const FleetView& fleet, GroupId group, std::size_t worker, const Candidate& candidate) const {
  const GroupView& view = fleet.groups[group.value()];
  const Tokens margin = virtual_envelope(fleet, view) - load_at(fleet, view, worker);
  return static_cast<double>(br_0_score(candidate.weight, margin, view.size()).count());
}

std::string_view Br0Bypass::score_meaning() const {
  return "tokens of imbalance that the admission removes, queued requests counted; workers with a free slot go first";
}

}  // namespace balanceroute
