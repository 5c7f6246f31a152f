#include "policy/shadow/world_shadow.hpp"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

#include "core/envelope.hpp"

namespace balanceroute {

// Hearing does in the shadow's world what each event says.
class WorldShadow::Hearing {
 public:
  explicit Hearing(WorldShadow& world) : world_{world} {}

  void operator()(const router_event::TenantAdded& event) { world_.router_.add_tenant(event.terms); }
  void operator()(const router_event::TermsChanged& event) { world_.router_.set_terms(event.tenant, event.terms); }
  void operator()(const router_event::GroupAdded& event) {
    world_.router_.add_group(std::string{event.name}, event.barrier);
    world_.groups_.emplace_back();
    world_.here_.emplace_back();
    world_.there_.emplace_back();
  }
  void operator()(const router_event::WorkerAdded& event) {
    (void)world_.router_.add_worker(event.group, std::string{event.url}, event.rank, event.slots, event.kv,
                                    event.state);
  }
  void operator()(const router_event::WorkerChanged& event) {
    using enum router_event::Change;
    Router& router = world_.router_;
    if (event.change == drain) (void)router.drain(event.worker);
    if (event.change == resume) (void)router.resume(event.worker);
    if (event.change == restart) (void)router.restart(event.worker);
    if (event.change == declare_dead) (void)router.declare_dead(event.worker);
    if (event.change == remove) (void)router.remove(event.worker);
  }
  void operator()(const router_event::WorkerLimited& event) {
    (void)world_.router_.limit(event.worker, event.sequences);
  }
  void operator()(const router_event::Submitted& event) { world_.submit(event.request); }
  void operator()(const router_event::Withdrawn& event) { world_.give_up(event.request); }
  void operator()(const router_event::Adopted& event) { world_.adopt(event.worker, event.request); }
  void operator()(const router_event::Aged&) {}      // ages there are its own
  void operator()(const router_event::Narrowed&) {}  // its slots are given back together
  void operator()(const router_event::Ended& event) {
    if (event.how == LeaseEnd::finished) {
      world_.finish(event.request, event.generated);
    } else {
      world_.give_up(event.request);
    }
  }
  void operator()(const router_event::Learned& event) {
    world_.router_.learn(event.request, event.generated, event.how);
  }
  void operator()(const router_event::Advanced& event) { world_.advance(event.group, event.steps); }
  void operator()(const router_event::Decided&) { world_.decide(); }
  void operator()(const router_event::PolicyChanged&) {}

 private:
  WorldShadow& world_;
};

WorldShadow::WorldShadow(std::string fleet, std::unique_ptr<Policy> policy, std::uint64_t seed, RouterSettings settings,
                         ShadowLimits limits)
    : Shadow{std::move(limits)}, router_{std::move(fleet), std::move(policy), seed, [&settings] {
                                           settings.listener = nullptr;
                                           return settings;
                                         }()} {}

void WorldShadow::heard(std::chrono::nanoseconds now, const RouterEvent& event) {
  const auto hear = [&] {
    router_.set_now(now);
    std::visit(Hearing{*this}, event);
    if (router_.broken_calls() > 0) throw std::logic_error{"its policy broke off"};
  };
  if (std::holds_alternative<router_event::Decided>(event)) {
    guard_.run_round(hear);
  } else {
    guard_.run(hear);
  }
}

std::optional<WorkerId> WorldShadow::choice(RequestId request) const {
  return router_.ledger().worker_of(request);
}

void WorldShadow::submit(const Request& request) {
  if (router_.waiting() >= kWaiting || !router_.submit(request)) {
    ++left_out_;
    return;
  }
  entries_.try_emplace(request.id);
}

// What no policy places is there too, where there is room for it.
void WorldShadow::adopt(WorkerId worker, const Request& request) {
  router_.withdraw(request.id);
  auto lease = router_.adopt(worker, request);
  if (!lease) return;
  Entry& entry = take(request.id, *std::move(lease), worker);
  begin(groups_[entry.group.value()], request.id);
}

void WorldShadow::finish(RequestId request, Tokens length) {
  const auto found = entries_.find(request);
  if (found == entries_.end()) return;
  Entry& entry = found->second;
  if (entry.placed && !entry.lease.live()) {
    entries_.erase(found);
    return;
  }
  entry.length = length;
  if (!entry.begun) return;
  Group& group = groups_[entry.group.value()];
  group.endings.emplace(*entry.begun + Steps{length.count()}, request);
  end_by(group);
}

void WorldShadow::give_up(RequestId request) {
  router_.withdraw(request);
  entries_.erase(request);
}

void WorldShadow::advance(GroupId id, Steps steps) {
  add_to_totals(id, steps);
  router_.advance(id, steps);
  Group& group = groups_[id.value()];
  group.steps += steps;
  for (const RequestId request : std::exchange(group.fresh, {})) {
    const auto found = entries_.find(request);
    if (found == entries_.end()) continue;
    found->second.lease.started();
    begin(group, request);
  }
  end_by(group);
}

WorldShadow::Entry& WorldShadow::take(RequestId request, Lease lease, WorkerId worker) {
  Entry& entry = entries_[request];
  entry.lease = std::move(lease);
  entry.placed = true;
  entry.group = router_.ledger().group_of(worker);
  return entry;
}

void WorldShadow::begin(Group& group, RequestId request) {
  Entry& entry = entries_.at(request);
  entry.begun = group.steps;
  if (entry.length) group.endings.emplace(group.steps + Steps{entry.length->count()}, request);
}

// Those whose time has come there.
void WorldShadow::end_by(Group& group) {
  while (!group.endings.empty() && group.endings.begin()->first <= group.steps) {
    const RequestId request = group.endings.begin()->second;
    group.endings.erase(group.endings.begin());
    const auto found = entries_.find(request);
    if (found == entries_.end()) continue;
    found->second.lease.finish(*found->second.length);
    entries_.erase(found);
  }
}

void WorldShadow::decide() {
  for (Admission& admission : router_.round_all()) {
    const Entry& entry = take(admission.request.id, std::move(admission.lease), admission.worker);
    groups_[entry.group.value()].fresh.push_back(admission.request.id);
  }
}

void WorldShadow::add_to_totals(GroupId group, Steps steps) {
  const auto add = [&](const Router& router, WorldTotals& totals) {
    const GroupView& view = router.ledger().view(group);
    if (view.size() == 0) return;
    const auto count = static_cast<double>(steps.count());
    totals.envelope += count * static_cast<double>(view.envelope().count());
    totals.mean_load += count * static_cast<double>(total_load(view.loads).count()) / static_cast<double>(view.size());
  };
  if (live_ == nullptr) return;
  add(*live_, here_[group.value()]);
  add(router_, there_[group.value()]);
}

}  // namespace balanceroute
