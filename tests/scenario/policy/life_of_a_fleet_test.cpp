// The life of one small fleet, told step by step through Router alone, on a clock that the test moves.
#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "core/envelope.hpp"
#include "policy/registry.hpp"
#include "policy/router.hpp"

namespace balanceroute {
namespace {

// A manual clock of decode steps over a router. Requests generate one token a step once started, which is what the
// engine truly does; the router learns it from the step clock, and from reports only when the test sends them.
class ManualFleet {
 public:
  explicit ManualFleet(const std::string& policy, std::uint32_t workers, std::int32_t slots)
      : router{"fleet", make_policy({.name = policy}).value(), 1}, group{router.add_group("decode")} {
    for (std::uint32_t i = 0; i < workers; ++i) {
      router.add_worker(group, "http://worker-" + std::to_string(i), 0, slots).value();
    }
  }

  void arrive(std::uint64_t id, std::int64_t prompt, std::int32_t sequences = 1) {
    ASSERT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{prompt}, .sequences = sequences}));
  }
  // Admits what can be admitted; the engines start each at once.
  std::size_t admit() {
    std::size_t count = 0;
    for (Admission& admission : router.round(group)) {
      placed[admission.request.id.value()] = admission.worker;
      leases[admission.request.id.value()] = std::move(admission.lease);
      ++count;
    }
    return count;
  }
  void start_all() {
    for (auto& [id, lease] : leases) lease.started();
  }
  void step(std::int64_t steps) { router.advance(group, Steps{steps}); }
  void finish(std::uint64_t id) { leases.erase(id); }

  [[nodiscard]] std::vector<std::int64_t> loads() const {
    std::vector<std::int64_t> all;
    for (const Tokens load : router.ledger().view(group).loads) all.push_back(load.count());
    return all;
  }

  Router router;
  GroupId group;
  std::map<std::uint64_t, WorkerId> placed;
  std::map<std::uint64_t, Lease> leases;
};

using Loads = std::vector<std::int64_t>;

// Law: through admission, growth, correction, cancel, drain and restart the router's books show what the workers hold,
// and end at zero.
TEST(LifeOfAFleet, AdmitsCorrectsCancelsDrainsAndRestarts) {
  ManualFleet fleet{"br_0", 3, 2};

  // Six requests fill three workers of two slots; two more wait.
  for (const auto& [id, prompt] : std::map<std::uint64_t, std::int64_t>{
           {1, 900}, {2, 100}, {3, 500}, {4, 500}, {5, 200}, {6, 800}, {7, 300}, {8, 50}}) {
    fleet.arrive(id, prompt);
  }
  EXPECT_EQ(fleet.admit(), 6U);
  EXPECT_EQ(fleet.router.waiting(), 2U);
  EXPECT_EQ(fleet.router.ledger().live_leases(), 6U);
  EXPECT_EQ(fleet.admit(), 0U);

  // Ten steps: nothing has started, so nothing has grown. Then all run: two sequences a worker grow by ten each.
  const Loads dispatched = fleet.loads();
  fleet.step(10);
  EXPECT_EQ(fleet.loads(), dispatched);
  fleet.start_all();
  fleet.step(10);
  Loads grown = dispatched;
  for (std::int64_t& load : grown) load += 20;
  EXPECT_EQ(fleet.loads(), grown);

  // A report corrects the clock: one of them has generated four tokens, not ten.
  const auto [slow, its_worker] = *fleet.placed.begin();
  fleet.leases.at(slow).progress(Tokens{4});
  grown[its_worker.value()] -= 6;
  EXPECT_EQ(fleet.loads(), grown);

  // A client leaves while its request waits: it is never admitted. Another leaves mid-stream: its slot is filled.
  const RequestId given_up = fleet.router.pooled().front().request.id;
  EXPECT_TRUE(fleet.router.withdraw(given_up));
  EXPECT_EQ(fleet.router.waiting(), 1U);
  fleet.finish(slow);
  EXPECT_EQ(fleet.admit(), 1U);
  EXPECT_EQ(fleet.router.waiting(), 0U);
  EXPECT_FALSE(fleet.placed.contains(given_up.value()));

  // A worker drains: what it has goes on, what arrives goes elsewhere, and then it leaves the barrier.
  const WorkerId leaving{0};
  ASSERT_TRUE(fleet.router.drain(leaving));
  EXPECT_EQ(fleet.router.remove(leaving).error(), WorkerError::StillBusy);
  fleet.arrive(9, 10);
  EXPECT_EQ(fleet.admit(), 0U);
  std::erase_if(fleet.leases, [&](const auto& held) { return fleet.placed.at(held.first) == leaving; });
  EXPECT_EQ(fleet.admit(), 0U);  // its slots are free, but not for new requests
  ASSERT_TRUE(fleet.router.remove(leaving));
  EXPECT_EQ(fleet.loads().size(), 2U);

  // A worker restarts: its leases are void, its slots free; ends of the old leases change nothing.
  const WorkerId restarted{1};
  ASSERT_TRUE(fleet.router.restart(restarted));
  EXPECT_EQ(fleet.loads()[0], 0);
  EXPECT_EQ(fleet.admit(), 1U);
  EXPECT_EQ(fleet.placed.at(9), restarted);
  std::erase_if(fleet.leases, [](const auto& held) { return !held.second.live(); });
  EXPECT_EQ(fleet.loads()[0], 10);

  // All ends: nothing is held, nothing waits.
  fleet.leases.clear();
  EXPECT_EQ(fleet.loads(), (Loads{0, 0}));
  EXPECT_EQ(fleet.router.ledger().live_leases(), 0U);
  EXPECT_EQ(fleet.router.waiting(), 0U);
  EXPECT_EQ(fleet.router.refused_choices(), 0U);
}

// Law: with the same requests in saturation br_0 keeps the group more even than binding by count on arrival.
TEST(LifeOfAFleet, Br0WaitsLessAtTheBarrierThanShortestQueue) {
  const auto mean_imbalance = [](const std::string& policy) {
    ManualFleet fleet{policy, 4, 8};
    Random draw{17};
    std::map<std::uint64_t, std::int64_t> ends;  // request -> step
    std::int64_t total = 0;
    std::uint64_t next = 0;
    std::vector<std::int64_t> lengths;
    constexpr std::int64_t kSteps = 2000;
    for (std::int64_t now = 0; now < kSteps; ++now) {
      while (fleet.router.waiting() < 64) {
        lengths.push_back(static_cast<std::int64_t>(20 + draw.below(80)));
        fleet.arrive(next++, static_cast<std::int64_t>(draw.exponential(1000)));
      }
      std::erase_if(fleet.leases, [&](const auto& held) { return ends.at(held.first) == now; });
      fleet.admit();
      for (auto& [id, lease] : fleet.leases) {
        lease.started();
        ends.try_emplace(id, now + lengths[id]);
      }
      total += imbalance(fleet.router.ledger().view(fleet.group).loads).count();
      fleet.step(1);
    }
    return static_cast<double>(total) / kSteps;
  };
  EXPECT_LT(mean_imbalance("br_0"), 0.6 * mean_imbalance("join_shortest_queue"));
}

// Law: a request of several sequences is one admission: its slots come together and go together.
TEST(LifeOfAFleet, SequencesLiveAndEndTogether) {
  ManualFleet fleet{"br_0", 2, 4};
  fleet.arrive(1, 100, 3);
  fleet.arrive(2, 100, 3);
  fleet.arrive(3, 300, 2);
  EXPECT_EQ(fleet.admit(), 2U);
  EXPECT_NE(fleet.placed.at(1), fleet.placed.at(2));
  fleet.start_all();
  fleet.step(5);
  EXPECT_EQ(fleet.loads(), (Loads{315, 315}));
  fleet.finish(2);
  EXPECT_EQ(fleet.admit(), 1U);
  EXPECT_EQ(fleet.placed.at(3), fleet.placed.at(2));
}

}  // namespace
}  // namespace balanceroute
