// What a policy is told, event by event.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "policy/registry.hpp"
#include "policy/router.hpp"

namespace balanceroute {
namespace {

using testing::ElementsAre;

// Gives the oldest request to the first worker with room, and writes down what it hears.
class Diary final : public PooledPolicy {
 public:
  explicit Diary(std::vector<std::string>& lines) : lines_{lines} {}

  [[nodiscard]] std::string_view name() const override { return "diary"; }
  void decide(const RoundInput& input, Random&, std::vector<Choice>& choices) override {
    for (std::size_t worker = 0; worker < input.group.size(); ++worker) {
      if (!input.group.has_room(worker, 1)) continue;
      choices.push_back({.candidate = 0, .worker = worker, .stage = Stage::single});
      return;
    }
  }
  [[nodiscard]] double score(const FleetView&, GroupId, std::size_t, const Candidate&) const override { return 0; }
  [[nodiscard]] std::string_view score_meaning() const override { return "nothing"; }

  void learned(const Candidate& candidate, Tokens generated, LeaseEnd how) override {
    write(how == LeaseEnd::finished ? "had finished" : "had been cut", candidate.request.id, generated);
  }
  void arrived(const Candidate& candidate) override { write("arrived", candidate.request.id, candidate.weight); }
  void withdrawn(RequestId request) override { write("withdrawn", request, Tokens{0}); }
  void admitted(const Request& request, GroupId, WorkerId worker) override {
    write("admitted to " + std::to_string(worker.value()), request.id, request.generated);
  }
  void aged(RequestId request, Tokens generated) override { write("aged", request, generated); }
  void narrowed(RequestId request, Tokens generated) override { write("one finished", request, generated); }
  void left(RequestId request, Tokens generated, LeaseEnd how) override {
    write(how == LeaseEnd::finished ? "finished" : "cut", request, generated);
  }
  void stepped(GroupId group, Steps steps) override {
    lines_.push_back("group " + std::to_string(group.value()) + " stepped " + std::to_string(steps.count()));
  }

 private:
  void write(const std::string& what, RequestId request, Tokens tokens) {
    lines_.push_back(std::to_string(request.value()) + " " + what + " " + std::to_string(tokens.count()));
  }
  std::vector<std::string>& lines_;
};

class PolicyEvents : public testing::Test {
 protected:
  PolicyEvents() : router{"fleet", std::make_unique<Diary>(lines), 1}, group{router.add_group("group")} {
    for (std::int32_t rank = 0; rank < 2; ++rank) router.add_worker(group, "http://host", rank, 1).value();
  }

  Lease run(std::uint64_t id) {
    EXPECT_TRUE(router.submit({.id = RequestId{id}, .prompt = Tokens{10}}));
    return std::move(router.round(group).front().lease);
  }

  std::vector<std::string> lines;
  Router router;
  GroupId group;
};

// Law: the policy hears of arrival, admission, first token, steps and end, in order, and an end from a cut.
TEST_F(PolicyEvents, TellTheLifeOfARequest) {
  Lease ends = run(1);
  Lease breaks = run(2);
  ends.started();
  breaks.progress(Tokens{1});
  router.advance(group, Steps{4});
  ends.finish(Tokens{5});
  breaks.release();
  EXPECT_THAT(lines, ElementsAre("1 arrived 10", "1 admitted to 0 0", "2 arrived 10", "2 admitted to 1 0", "1 aged 0",
                                 "2 aged 0", "2 aged 1", "group 0 stepped 4", "1 finished 5", "2 cut 5"));
  EXPECT_EQ(router.ledger().live_leases(), 0U);
  EXPECT_EQ(total_load(router.ledger().view(group).loads), Tokens{0});
}

TEST_F(PolicyEvents, TellOfAWithdrawalAndOfARestart) {
  const Lease lost = run(1);
  ASSERT_TRUE(router.submit({.id = RequestId{2}, .prompt = Tokens{20}}));
  ASSERT_TRUE(router.withdraw(RequestId{2}));
  ASSERT_TRUE(router.restart(WorkerId{0}));
  EXPECT_THAT(lines, ElementsAre("1 arrived 10", "1 admitted to 0 0", "2 arrived 20", "2 withdrawn 0", "1 cut 0"));
}

// Law: a policy that takes over hears of what runs, at its age, and of what waits.
TEST_F(PolicyEvents, BriefAPolicyThatTakesOver) {
  Lease runs = run(1);
  const Lease waits_for_tokens = run(2);
  runs.started();
  router.advance(group, Steps{7});
  ASSERT_TRUE(router.submit({.id = RequestId{3}, .prompt = Tokens{30}}));
  lines.clear();
  router.set_policy(std::make_unique<Diary>(lines));
  EXPECT_THAT(lines, ElementsAre("1 admitted to 0 0", "1 aged 7", "2 admitted to 1 0", "3 arrived 30"));
}

// Law: a policy hears of each sequence that ends before the others, of the last one as of the request's end, and of one
// that takes over as it is by then.
TEST_F(PolicyEvents, TellOfSequencesThatEndOneByOne) {
  const WorkerId wide = router.add_worker(group, "http://wide", 0, 3).value();
  Lease lease = router.adopt(wide, {.id = RequestId{1}, .prompt = Tokens{10}, .sequences = 3}).value();
  lease.finish_one(Tokens{6});
  router.set_policy(std::make_unique<Diary>(lines));
  lease.finish_one(Tokens{7});
  lease.finish_one(Tokens{8});
  lease.finish_one(Tokens{9});
  EXPECT_THAT(lines, ElementsAre("1 admitted to 2 0", "1 aged 0", "1 one finished 6", "1 admitted to 2 0", "1 aged 0",
                                 "1 one finished 7", "1 finished 8"));
}

// Law: a finish says how much was generated, whatever the step clock made of it, and once.
TEST_F(PolicyEvents, AFinishIsExactAndHappensOnce) {
  Lease lease = run(1);
  lease.finish(Tokens{40});
  lease.finish(Tokens{50});
  lease.release();
  EXPECT_THAT(lines, ElementsAre("1 arrived 10", "1 admitted to 0 0", "1 finished 40"));
}

// Law: a policy that has given way hears everything, is not told twice, and decides again when it is restored.
TEST_F(PolicyEvents, RestingPolicyGoesOnHearing) {
  const Lease before = run(1);
  router.degrade(make_policy({.name = "least_tokens"}).value());
  EXPECT_EQ(router.policy().name(), "least_tokens");
  EXPECT_EQ(router.chosen_policy().name(), "diary");
  Lease meanwhile = run(2);
  meanwhile.started();
  EXPECT_TRUE(router.submit({.id = RequestId{3}, .prompt = Tokens{10}}));
  router.restore();
  EXPECT_EQ(router.policy().name(), "diary");
  meanwhile.finish(Tokens{1});
  EXPECT_EQ(router.round(group).size(), 1U);
  EXPECT_THAT(lines, ElementsAre("1 arrived 10", "1 admitted to 0 0", "2 arrived 10", "2 admitted to 1 0", "2 aged 0",
                                 "3 arrived 10", "2 finished 1", "3 admitted to 1 0"));
}

// Law: what waits moves to the policy that decides, and back.
TEST_F(PolicyEvents, WaitingRequestsMoveWithTheDecision) {
  std::vector<Lease> running;
  for (std::uint64_t id = 1; id <= 2; ++id) running.push_back(run(id));
  EXPECT_TRUE(router.submit({.id = RequestId{3}, .prompt = Tokens{10}}));
  router.degrade(make_policy({.name = "round_robin"}).value());
  EXPECT_TRUE(router.pooled().empty());
  router.degrade(make_policy({.name = "br_0"}).value());  // a graver cause has gone
  EXPECT_EQ(router.pooled().size(), 1U);
  router.restore();
  EXPECT_EQ(router.pooled().size(), 1U);
  router.restore();  // nothing rests
  EXPECT_EQ(router.policy().name(), "diary");
}

// Throws in its first round.
class Breaks final : public PooledPolicy {
 public:
  [[nodiscard]] std::string_view name() const override { return "breaks"; }
  void decide(const RoundInput&, Random&, std::vector<Choice>& choices) override {
    choices.push_back({.candidate = 0, .worker = 0, .stage = Stage::single});
    if (!std::exchange(broken_, true)) throw std::runtime_error{"a broken promise"};
  }
  [[nodiscard]] double score(const FleetView&, GroupId, std::size_t, const Candidate&) const override { return 0; }
  [[nodiscard]] std::string_view score_meaning() const override { return "nothing"; }

 private:
  bool broken_ = false;
};

// Law: a policy that throws costs a round and nothing else.
TEST_F(PolicyEvents, PolicyThatThrowsIsCounted) {
  router.set_policy(std::make_unique<Breaks>());
  EXPECT_TRUE(router.submit({.id = RequestId{1}, .prompt = Tokens{10}}));
  EXPECT_TRUE(router.round(group).empty());
  EXPECT_EQ(router.broken_calls(), 1U);
  EXPECT_EQ(router.waiting(), 1U);
  EXPECT_EQ(router.round(group).size(), 1U);
  EXPECT_EQ(router.broken_calls(), 1U);
}

}  // namespace
}  // namespace balanceroute
