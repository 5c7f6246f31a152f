#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <vector>

#include "policy/registry.hpp"
#include "support/group_sketch.hpp"

namespace balanceroute {
namespace {

// A fleet written down by hand: groups of workers, numbered through, and what is queued at each.
struct FleetSketch {
  explicit FleetSketch(std::vector<GroupSketch> sketches) : groups{std::move(sketches)} {
    std::uint32_t next = 0;
    for (std::uint32_t g = 0; g < groups.size(); ++g) {
      for (WorkerId& worker : groups[g].workers) worker = WorkerId{next++};
      views.push_back(groups[g].view());
      views.back().group = GroupId{g};
    }
    queued.resize(next);
  }
  [[nodiscard]] FleetView view() const { return {.groups = views, .queued = queued}; }

  std::vector<GroupSketch> groups;
  std::vector<GroupView> views;
  std::vector<Queued> queued;
};

class Bound {
 public:
  explicit Bound(const std::string& name) : policy_{make_policy({.name = name}).value()} {}
  std::optional<WorkerId> operator()(const FleetSketch& fleet, std::int32_t sequences = 1) {
    const auto pool = sketch_pool({{.prompt = 100, .sequences = sequences}});
    return static_cast<ImmediatePolicy&>(*policy_).bind(fleet.view(), pool[0], random_);
  }
  double score(const FleetSketch& fleet, std::uint32_t group, std::size_t worker) {
    return policy_->score(fleet.view(), GroupId{group}, worker, sketch_pool({{100}})[0]);
  }

 private:
  std::unique_ptr<Policy> policy_;
  Random random_{1};
};

// Law: counts per slot decide, over all groups, whatever the loads.
TEST(JoinShortestQueue, CountsSequencesPerSlot) {
  const FleetSketch fleet{
      {{{.load = 1, .free_slots = 2, .sequences = 2}},
       {{.load = 9999, .free_slots = 8, .sequences = 4}, {.load = 5, .free_slots = 0, .sequences = 1}}}};
  Bound bind{"join_shortest_queue"};
  EXPECT_EQ(bind(fleet), WorkerId{1});  // 4 of 12 against 2 of 4 and 1 of 1
  EXPECT_DOUBLE_EQ(bind.score(fleet, 1, 0), -4.0 / 12);
}

// Law: what is queued counts like what runs.
TEST(JoinShortestQueue, QueuedSequencesCount) {
  FleetSketch fleet{{{{.free_slots = 3, .sequences = 1}, {.free_slots = 2, .sequences = 2}}}};
  Bound bind{"join_shortest_queue"};
  EXPECT_EQ(bind(fleet), WorkerId{0});
  fleet.queued[0].sequences = 2;
  EXPECT_EQ(bind(fleet), WorkerId{1});
}

// Law: loads per slot decide, running and queued, whatever the counts.
TEST(LeastTokens, CountsLoadPerSlot) {
  FleetSketch fleet{{{{.load = 100, .free_slots = 1, .sequences = 1}, {.load = 300, .free_slots = 0, .sequences = 8}}}};
  Bound bind{"least_tokens"};
  EXPECT_EQ(bind(fleet), WorkerId{1});
  EXPECT_DOUBLE_EQ(bind.score(fleet, 0, 1), -300.0 / 8);
  fleet.queued[1].load = Tokens{150};
  EXPECT_EQ(bind(fleet), WorkerId{0});
}

// Law: equal workers draw lots, each with the same chance.
TEST(LeastTokens, TiesAreDrawnEvenly) {
  const FleetSketch fleet{{{{.load = 4}, {.load = 9}, {.load = 4}}, {{.load = 4}}}};
  Bound bind{"least_tokens"};
  std::map<std::uint32_t, int> hits;
  for (int i = 0; i < 6000; ++i) ++hits[bind(fleet)->value()];
  EXPECT_EQ(hits.size(), 3U);
  for (const std::uint32_t worker : {0U, 2U, 3U}) EXPECT_NEAR(hits[worker], 2000, 200);  // five standard deviations
}

// Law: turns go through all groups by id, and pass over workers that take nothing.
TEST(RoundRobin, GoesRoundTheEligible) {
  FleetSketch fleet{{{{}, {}}, {{.eligible = false}, {}}}};
  Bound bind{"round_robin"};
  EXPECT_EQ(bind.score(fleet, 1, 1), -3);
  for (const std::uint32_t expected : {0U, 1U, 3U, 0U, 1U}) EXPECT_EQ(bind(fleet), WorkerId{expected});
  EXPECT_EQ(bind.score(fleet, 1, 1), -1);
  EXPECT_EQ(bind.score(fleet, 0, 0), -2);
}

// Law: no policy binds to a worker that is too small or takes nothing.
TEST(ImmediatePolicies, BindOnlyWhereTheRequestFits) {
  const FleetSketch fleet{
      {{{.free_slots = 8, .eligible = false}, {.free_slots = 2}, {.free_slots = 0, .sequences = 3}}}};
  for (const std::string name : {"round_robin", "join_shortest_queue", "least_tokens"}) {
    SCOPED_TRACE(name);
    Bound bind{name};
    EXPECT_EQ(bind(fleet, 3), WorkerId{2});
    EXPECT_EQ(bind(fleet, 4), std::nullopt);
    EXPECT_EQ(bind(FleetSketch{{}}), std::nullopt);
  }
}

}  // namespace
}  // namespace balanceroute
