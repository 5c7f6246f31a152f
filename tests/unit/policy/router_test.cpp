#include "policy/router.hpp"

#include <gtest/gtest.h>

#include <map>
#include <vector>

#include "policy/registry.hpp"

namespace balanceroute {
namespace {

std::unique_ptr<Policy> policy_named(std::string name) {
  return make_policy({.name = std::move(name)}).value();
}

// A router of one fleet whose leases are kept by request.
class Fleet {
 public:
  explicit Fleet(const std::string& policy, std::vector<std::int32_t> slots)
      : router{"fleet", policy_named(policy), 1} {
    group = add_group(slots);
  }

  GroupId add_group(const std::vector<std::int32_t>& slots) {
    const GroupId added = router.add_group("group" + std::to_string(router.ledger().groups().size()));
    for (const std::int32_t count : slots) {
      router.add_worker(added, "http://host", static_cast<std::int32_t>(router.ledger().worker_count()), count).value();
    }
    return added;
  }
  void submit(std::uint64_t id, std::int64_t prompt, std::int32_t sequences = 1) {
    ASSERT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{prompt}, .sequences = sequences}));
  }
  // Runs a round and keeps its leases; the worker each request went to.
  std::map<std::uint64_t, std::uint32_t> round(GroupId which) {
    std::map<std::uint64_t, std::uint32_t> placed;
    for (Admission& admission : router.round(which)) {
      placed[admission.request.id.value()] = admission.worker.value();
      leases[admission.request.id.value()] = std::move(admission.lease);
    }
    return placed;
  }
  std::map<std::uint64_t, std::uint32_t> round() { return round(group); }
  Tokens load(std::uint32_t worker) const { return router.ledger().worker(WorkerId{worker}).load; }

  Router router;
  GroupId group;
  std::map<std::uint64_t, Lease> leases;
};

using Placed = std::map<std::uint64_t, std::uint32_t>;

// Law: every policy fills free slots while requests wait, and gives everything back in the end.
TEST(Router, EveryPolicyIsWorkConservingAndDrainsToZero) {
  for (const std::string_view name : policy_names()) {
    SCOPED_TRACE(name);
    Fleet fleet{std::string{name}, {2, 2, 2}};
    for (std::uint64_t id = 0; id < 8; ++id) fleet.submit(id, 100);
    EXPECT_EQ(fleet.round().size(), 6U);
    EXPECT_EQ(fleet.router.waiting(), 2U);
    fleet.leases.clear();
    EXPECT_EQ(fleet.round().size(), 2U);
    fleet.leases.clear();
    EXPECT_EQ(fleet.router.waiting(), 0U);
    EXPECT_EQ(fleet.router.ledger().live_leases(), 0U);
    EXPECT_EQ(total_load(fleet.router.ledger().view(fleet.group).loads), Tokens{0});
    EXPECT_EQ(fleet.router.refused_choices(), 0U);
  }
}

// Law: what a round admitted and nobody took is given back when the next one begins.
TEST(Router, UntakenLeasesAreGivenBack) {
  Fleet fleet{"br_0", {1}};
  fleet.submit(1, 10);
  EXPECT_EQ(fleet.router.round(fleet.group).size(), 1U);
  EXPECT_EQ(fleet.load(0), Tokens{10});
  EXPECT_EQ(fleet.router.round(fleet.group).size(), 0U);
  EXPECT_EQ(fleet.load(0), Tokens{0});
}

TEST(Router, RefusesWhatItCannotPlace) {
  Router router{"fleet", policy_named("br_0"), 1};
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::NoWorkerReady);
  const GroupId group = router.add_group("group");
  const WorkerId worker = router.add_worker(group, "http://host", 0, 2).value();
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}, .sequences = 3}).error(),
            SubmitError::TooManySequences);
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{-1}}).error(), SubmitError::NegativeTokens);
  ASSERT_TRUE(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}));
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::AlreadyKnown);
  const Lease lease = std::move(router.round(group)[0].lease);
  EXPECT_EQ(router.submit({.id = RequestId{1}, .prompt = Tokens{1}}).error(), SubmitError::AlreadyKnown);
  ASSERT_TRUE(router.drain(worker));
  EXPECT_EQ(router.submit({.id = RequestId{2}, .prompt = Tokens{1}}).error(), SubmitError::NoWorkerReady);
}

}  // namespace
}  // namespace balanceroute
