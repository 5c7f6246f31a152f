#include "policy/router.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "policy/registry.hpp"
#include "support/property.hpp"

namespace balanceroute {
namespace {

// A router under random traffic; it checks after every operation what must hold whatever the policy.
class Traffic {
 public:
  Traffic(PolicyParams chosen, std::uint64_t seed) : params{std::move(chosen)}, router{"fleet", make(), seed} {
    for (std::uint32_t group = 0; group < 2; ++group) {
      router.add_group("group" + std::to_string(group));
      for (std::int32_t rank = 0; rank < 3; ++rank) {
        router.add_worker(GroupId{group}, "http://host", rank, kSlots).value();
      }
    }
  }

  void step(std::uint64_t word) {
    Random draw{word};
    const WorkerId worker{static_cast<std::uint32_t>(draw.below(6))};
    const GroupId group{static_cast<std::uint32_t>(draw.below(2))};
    switch (word % 16) {
      case 0:
      case 1:
      case 2:
      case 3:
      case 4:
      case 5:
        submit(draw);
        break;
      case 6:
      case 7:
      case 8:
        round(group, draw.below(2) == 0);
        break;
      case 9:
      case 10:
        finish(draw);
        break;
      case 11:
        router.advance(group, Steps{static_cast<std::int64_t>(draw.below(9))});
        break;
      case 12:
        withdraw(draw);
        break;
      case 13:
        membership(worker, draw);
        break;
      case 14:
        correct(draw);
        break;
      default:
        draw.below(4) == 0 ? exchange(draw) : round(group, false);
    }
    check_places();
  }

  void drain() {
    for (std::uint32_t i = 0; i < 6; ++i) {
      require(router.restart(WorkerId{i}).has_value());
      require(router.resume(WorkerId{i}).has_value());
    }
    for (int i = 0; router.waiting() > 0; ++i) {
      require(i < 1000);
      leases.clear();
      round(GroupId{0}, false);
      round(GroupId{1}, false);
    }
    leases.clear();
    require(router.round_all().empty());
    require(router.ledger().live_leases() == 0U);
    for (const GroupView& group : router.ledger().groups()) require(total_load(group.loads) == Tokens{0});
    require(waiting.empty());
  }

  // Every admission so far, in order: request and worker.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> history;

 private:
  static constexpr std::int32_t kSlots = 3;

  std::unique_ptr<Policy> make() const { return make_policy(params).value(); }

  void submit(Random& draw) {
    const Request request{.id = RequestId{next++},
                          .prompt = Tokens{static_cast<std::int64_t>(draw.below(4000))},
                          .sequences = draw.below(4) == 0 ? static_cast<std::int32_t>(1 + draw.below(kSlots)) : 1};
    const bool somewhere = std::ranges::any_of(
        router.ledger().groups(), [](const GroupView& group) { return std::ranges::count(group.eligible, 1) > 0; });
    require(router.submit(request).has_value() == somewhere);
    if (somewhere) waiting.insert(request.id);
  }

  void round(GroupId group, bool explain) {
    for (Admission& admission : router.round(group, explain)) {
      require(waiting.erase(admission.request.id) == 1U);  // it waited, and is admitted once
      require(admission.lease.live());
      require(router.ledger().group_of(admission.worker) == group);
      require(router.ledger().incarnation(admission.worker) == admission.incarnation);
      require(!admission.runner_up || admission.runner_up->worker != admission.worker);
      history.emplace_back(admission.request.id.value(), admission.worker.value());
      leases[admission.request.id] = std::move(admission.lease);
    }
    require(router.refused_choices() == 0U && router.broken_calls() == 0U);
    if (params.name != "br_fit") check_work_conserving(router.ledger().view(group));  // it may hold a request back
  }

  // No request of one sequence waits where a worker of this group could take it, unless that worker is kept for a wide
  // one: then others of the group have no room.
  void check_work_conserving(const GroupView& group) const {
    std::size_t with_room = 0;
    for (std::size_t i = 0; i < group.size(); ++i) {
      if (!group.has_room(i, 1)) continue;
      const auto queue = router.queued_at(group.workers[i]);
      if (!queue.empty()) require(!group.has_room(i, queue.front().request.sequences));
      ++with_room;
    }
    const bool narrow =
        std::ranges::any_of(router.pooled(), [](const Candidate& one) { return one.request.sequences == 1; });
    if (narrow) require(with_room <= 1U);
  }

  void finish(Random& draw) {
    if (leases.empty()) return;
    leases.erase(std::next(leases.begin(), static_cast<std::ptrdiff_t>(draw.below(leases.size()))));
  }

  void correct(Random& draw) {
    if (leases.empty()) return;
    Lease& lease = std::next(leases.begin(), static_cast<std::ptrdiff_t>(draw.below(leases.size())))->second;
    draw.below(2) == 0 ? lease.started() : lease.progress(Tokens{static_cast<std::int64_t>(draw.below(500))});
  }

  void withdraw(Random& draw) {
    const RequestId request{draw.below(next + 1)};
    require(router.withdraw(request) == (waiting.erase(request) == 1));
  }

  void membership(WorkerId worker, Random& draw) {
    switch (draw.below(4)) {
      case 0:
        std::ignore = router.drain(worker);
        break;
      case 1:
        std::ignore = router.declare_dead(worker);
        break;
      case 2:
        require(router.restart(worker).has_value());
        break;
      default:
        std::ignore = router.resume(worker);
    }
  }

  // Another policy, one in place of it for a while, or the chosen one again.
  void exchange(Random& draw) {
    params.name = policy_names()[draw.below(policy_names().size())];
    switch (draw.below(3)) {
      case 0:
        router.set_policy(make());
        break;
      case 1:
        router.degrade(make());
        break;
      default:
        router.restore();
    }
    params.name = router.policy().name();
    any_fit = any_fit || params.name == "br_fit";
  }

  // Each waiting request is in exactly one place and counted there, queues belong to workers that can serve them, order
  // of arrival holds, and passes keep to their bound.
  void check_places() const {
    std::set<RequestId> found;
    const auto look_at = [&](std::span<const Candidate> row) {
      require(std::ranges::is_sorted(row, {}, &Candidate::serial));
      for (const Candidate& candidate : row) {
        require(found.insert(candidate.request.id).second);
        if (candidate.request.sequences == 1 && !any_fit) {
          require(candidate.passes < params.max_passes + params.r_max);
        }
      }
    };
    look_at(router.pooled());
    for (WorkerId worker{0}; worker.value() < 6; worker = WorkerId{worker.value() + 1}) {
      const auto queue = router.queued_at(worker);
      look_at(queue);
      require(queue.empty() || router.ledger().worker(worker).eligible);
      Queued total;
      for (const Candidate& candidate : queue) {
        total.load += candidate.weight;
        total.kv += candidate.kv;
        total.sequences += candidate.request.sequences;
      }
      require(router.queue_total(worker).load == total.load);
      require(router.queue_total(worker).kv == total.kv);
      require(router.queue_total(worker).sequences == total.sequences);
    }
    require(found == waiting);
    require(router.waiting() == waiting.size());
    for (const GroupView& group : router.ledger().groups()) {
      for (std::size_t i = 0; i < group.size(); ++i) require(group.free_slots[i] >= 0);
    }
  }

  PolicyParams params;
  Router router;
  bool any_fit = params.name == "br_fit";  // br_fit has been at work, which bounds lateness by a rule of its own
  std::set<RequestId> waiting;
  std::map<RequestId, Lease> leases;
  std::uint64_t next = 0;
};

PolicyParams draw_params(std::uint64_t seed) {
  Random draw{seed};
  return {.name = std::string{policy_names()[draw.below(policy_names().size())]},
          .r_max = static_cast<std::int64_t>(1 + draw.below(5)),
          .greedy_threshold = static_cast<std::int64_t>(draw.below(9)),
          .worker_order = draw.below(2) == 0 ? "load" : "capacity",
          .max_passes = static_cast<std::int64_t>(1 + draw.below(8))};
}

// Law: a worker never has more than its slots, a request is admitted once and waits in one place, no slot stays empty
// while a request waits for it, nobody is passed over without bound, and in the end everything is given back.
TEST(RouterProperty, HoldsItsPromisesUnderRandomTraffic) {
  check_property(10'000, [](std::uint64_t seed, const std::vector<std::uint32_t>& words) {
    Traffic traffic{draw_params(seed), seed};
    for (const std::uint32_t word : words) traffic.step(word);
    traffic.drain();
  });
}

// Law: the same seed and the same events give the same admissions.
TEST(RouterProperty, SameSeedSameAdmissions) {
  check_property(2'000, [](std::uint64_t seed, const std::vector<std::uint32_t>& words) {
    Traffic once{draw_params(seed), seed};
    Traffic again{draw_params(seed), seed};
    for (const std::uint32_t word : words) once.step(word);
    for (const std::uint32_t word : words) again.step(word);
    once.drain();
    again.drain();
    require(once.history == again.history);
  });
}

// A router of one group whose requests have limits that its policy may look at. It tells where each request goes.
class LimitedTraffic {
 public:
  LimitedTraffic(PolicyParams chosen, std::uint64_t seed) : params{std::move(chosen)}, router{"fleet", make(), seed} {
    router.add_group("group");
    for (std::int32_t rank = 0; rank < 3; ++rank) router.add_worker(GroupId{0}, "http://host", rank, 4).value();
  }

  void exchange_policy() { router.set_policy(make()); }

  void step(std::uint64_t word) {
    Random draw{word};
    switch (word % 8) {
      case 0:
      case 1:
      case 2:
        require(router
                    .submit({.id = RequestId{next++},
                             .prompt = Tokens{static_cast<std::int64_t>(draw.below(300))},
                             .sequences = static_cast<std::int32_t>(1 + draw.below(2)),
                             .output_limit = Tokens{static_cast<std::int64_t>(1 + draw.below(60))}})
                    .has_value());
        break;
      case 3:
      case 4:
        for (Admission& admission : router.round(GroupId{0})) {
          history.emplace_back(admission.request.id.value(), admission.worker.value());
          leases.push_back(std::move(admission.lease));
        }
        break;
      case 5:
        router.advance(GroupId{0}, Steps{static_cast<std::int64_t>(draw.below(9))});
        break;
      default:
        if (leases.empty()) return;
        Lease& lease = leases[draw.below(leases.size())];
        draw.below(2) == 0 ? lease.started() : lease.release();
    }
  }

  // Every admission so far, in order: request and worker.
  std::vector<std::pair<std::uint64_t, std::uint32_t>> history;

 private:
  std::unique_ptr<Policy> make() const { return make_policy(params).value(); }

  PolicyParams params;
  Router router;
  std::vector<Lease> leases;
  std::uint64_t next = 0;
};

// Law: where a policy goes by what runs and waits, one that takes over decides as if it had been there from the start.
TEST(RouterProperty, APolicyThatTakesOverDecidesAsIfItHadBeenThere) {
  check_property(4'000, [](std::uint64_t seed, std::vector<std::uint32_t> before, std::vector<std::uint32_t> after) {
    Random draw{seed};
    const PolicyParams params{.name = draw.below(4) == 0 ? "br_0" : "br_h",
                              .r_max = static_cast<std::int64_t>(1 + draw.below(4)),
                              .greedy_threshold = static_cast<std::int64_t>(draw.below(9)),
                              .predictor = {.min_requests = 1'000'000},  // limits are all that is known of lengths
                              .horizon_steps = static_cast<std::int64_t>(1 + draw.below(40)),
                              .projection = draw.below(2) == 0 ? "point" : "survival",
                              .refresh_steps = 1};  // nothing depends on when a request was predicted
    LimitedTraffic there{params, seed};
    LimitedTraffic takes_over{params, seed};
    for (const std::uint32_t word : before) {
      there.step(word);
      takes_over.step(word);
    }
    takes_over.exchange_policy();
    for (const std::uint32_t word : after) {
      there.step(word);
      takes_over.step(word);
    }
    require(there.history == takes_over.history);
  });
}

}  // namespace
}  // namespace balanceroute
