// Laws of decision logs: what a router heard and decided is decided again, and anything else is found.
#include "proxy/decision_log.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

#include "policy/registry.hpp"
#include "policy/router.hpp"
#include "proxy/decision_check.hpp"

namespace balanceroute::proxy {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr std::string_view kRound = R"("e":"round")";

class DecisionLogTest : public testing::TestWithParam<std::string_view> {
 protected:
  DecisionLogTest() : path_{testing::TempDir() + "decisions-" + std::to_string(::getpid()) + ".jsonl"} {}
  ~DecisionLogTest() override { std::filesystem::remove(path_); }

  std::string text() const {
    std::ifstream file{path_, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, {}};
  }
  void write(const std::string& text) const { std::ofstream{path_, std::ios::binary | std::ios::trunc} << text; }

  std::unique_ptr<DecisionLog> open(const RouterOrigin& origin) const {
    auto log = DecisionLog::open({.path = path_, .limit_mb = 1}, origin);
    EXPECT_TRUE(log) << log.error();
    return log ? *std::move(log) : nullptr;
  }

  // A fleet of two groups lives for `rounds` rounds: requests come, run, end, are withdrawn and cut; workers drain,
  // come back and restart.
  // `changes` are new policies, by the round that they come before.
  void live(std::string_view policy, int rounds, const std::map<int, PolicyParams>& changes = {}) const {
    RouterOrigin origin{.fleet = "f", .seed = 7, .kv_block = 16, .policy = {}, .load_model = {}};
    origin.policy.name = policy;
    const auto log = open(origin);
    Router router{"f",
                  make_policy(origin.policy).value(),
                  origin.seed,
                  {.books = {.kv_block = Tokens{16}}, .listener = log.get()}};
    const TenantId tenant = router.add_tenant({.weight = 3, .quota = 12});
    for (const std::string_view name : {"a", "b"}) {
      const GroupId group = router.add_group(std::string{name});
      for (int rank = 0; rank < 4; ++rank) {
        ASSERT_TRUE(router.add_worker(group, "http://" + std::string{name}, rank, 3, {.capacity = Tokens{4'000}}));
      }
    }
    Random random{1};
    for (int past = 0; past < 150; ++past) {
      router.learn({.id = {}, .prompt = Tokens{20}, .prompt_key = random.below(5)},
                   Tokens{static_cast<std::int64_t>(random.below(50))},
                   past % 7 == 0 ? LeaseEnd::cut : LeaseEnd::finished);
    }
    std::map<std::uint64_t, Lease> leases;
    const auto some_lease = [&] { return std::next(leases.begin(), static_cast<long>(random.below(leases.size()))); };
    for (int round = 0; round < rounds; ++round) {
      router.set_now(std::chrono::milliseconds{20 * round});
      if (const auto change = changes.find(round); change != changes.end()) {
        router.set_policy(make_policy(change->second).value(), change->second);
      }
      for (auto arrivals = random.below(4); arrivals > 0; --arrivals) {
        const std::uint64_t id = next_id_++;
        (void)router.submit({.id = RequestId{id},
                             .prompt = Tokens{static_cast<std::int64_t>(1 + random.below(900))},
                             .sequences = random.below(8) == 0 ? 2 : 1,
                             .prompt_key = random.below(5),
                             .tenant = random.below(3) == 0 ? tenant : kDefaultTenant});
      }
      if (random.below(6) == 0) router.withdraw(RequestId{random.below(next_id_)});
      if (leases.size() > 2) {
        some_lease()->second.finish(Tokens{static_cast<std::int64_t>(random.below(50))});
        some_lease()->second.finish_one(Tokens{static_cast<std::int64_t>(random.below(50))});
        if (random.below(3) == 0) leases.erase(some_lease());
        some_lease()->second.progress(Tokens{static_cast<std::int64_t>(1 + random.below(9))});
        std::erase_if(leases, [](const auto& entry) { return !entry.second.live(); });
      }
      const WorkerId worker{static_cast<std::uint32_t>(random.below(8))};
      if (round % 50 == 20) router.set_terms(tenant, {.weight = 1 + round / 50, .quota = round % 100 == 20 ? 2 : 12});
      if (round % 17 == 3) (void)router.drain(worker);
      if (round % 17 == 9) (void)router.resume(WorkerId{static_cast<std::uint32_t>(round % 8)});
      if (round % 40 == 5) (void)router.restart(worker);
      if (round == 60) {
        auto lease = router.adopt(worker, {.id = RequestId{1'000'000}, .prompt = Tokens{50}, .generated = Tokens{9}});
        if (lease) leases[1'000'000] = *std::move(lease);
      }
      for (const GroupId group : {GroupId{0}, GroupId{1}}) router.advance(group, Steps{1});
      for (Admission& admission : router.round_all()) {
        leases[admission.request.id.value()] = std::move(admission.lease);
        leases[admission.request.id.value()].started();
      }
    }
  }

  std::string path_;
  mutable std::uint64_t next_id_ = 0;
};

// Law: under every policy a fresh router that is done the same decides the same, in every round.
TEST_P(DecisionLogTest, EveryDecisionIsMadeAgain) {
  live(GetParam(), 400);
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->difference, std::nullopt) << *report->difference;
  EXPECT_EQ(report->policy, GetParam());
  EXPECT_EQ(report->rounds, 400);
  EXPECT_EQ(report->requests, static_cast<std::int64_t>(next_id_));
  EXPECT_GT(report->admissions, 100);
  EXPECT_EQ(report->end, "stop");
}

INSTANTIATE_TEST_SUITE_P(Policies, DecisionLogTest, testing::ValuesIn(policy_names()),
                         [](const auto& test) { return std::string{test.param}; });

// Law: a log goes on through a change of the policy.
TEST_F(DecisionLogTest, PolicyChangesAreMadeAgain) {
  PolicyParams br_fit;
  br_fit.name = "br_fit";
  PolicyParams patient;
  patient.name = "least_tokens";
  patient.max_wait_ms = 200;
  live("br_0", 300, {{100, br_fit}, {200, patient}});
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->difference, std::nullopt) << *report->difference;
  EXPECT_EQ(report->policy, "br_0, then br_fit, then least_tokens");
  EXPECT_EQ(report->rounds, 300);
}

// Law: one changed event, a release that is missing, is found at the first round that it changes.
TEST_F(DecisionLogTest, AMissingEventIsFound) {
  live("br_0", 200);
  std::string log = text();
  const auto finish = log.find(R"("e":"finish")");
  const auto begin = log.rfind('\n', finish) + 1;
  write(log.erase(begin, log.find('\n', finish) + 1 - begin));
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  ASSERT_TRUE(report->difference);
  EXPECT_THAT(*report->difference, AllOf(HasSubstr("round "), HasSubstr("the router decides")));
}

// Law: another decision than the router's is named by its round, its place in it and both choices.
TEST_F(DecisionLogTest, AnotherDecisionIsNamed) {
  live("br_0", 20);
  std::string log = text();
  constexpr std::string_view kFirstAdmission = R"("admitted":[[)";
  const auto at = log.find(kFirstAdmission);
  ASSERT_NE(at, std::string::npos);
  std::int64_t round = 0;
  for (auto p = log.find(kRound); p < at; p = log.find(kRound, p + 1)) ++round;
  const auto id = at + kFirstAdmission.size();
  const auto comma = log.find(',', id);
  const std::string request = log.substr(id, comma - id);
  log.replace(comma + 1, 1, "9");  // there are eight workers
  write(log);
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  ASSERT_TRUE(report->difference);
  EXPECT_THAT(*report->difference, AllOf(HasSubstr("round " + std::to_string(round) + ", admission 1"),
                                         HasSubstr("the log has request " + request + " on worker 9")));
}

// Law: a log ends at its limit, says so, and is still one that can be checked.
TEST_F(DecisionLogTest, EndsAtItsLimit) {
  live("least_tokens", 6'000);
  EXPECT_LE(std::filesystem::file_size(path_), std::uintmax_t{1} << 20);
  EXPECT_GT(std::filesystem::file_size(path_), (std::uintmax_t{1} << 20) - 4096);
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->end, "limit");
  EXPECT_EQ(report->difference, std::nullopt);
  EXPECT_LT(report->rounds, 6'000);
}

// Law: the log of a router that was killed is checked as far as it goes.
TEST_F(DecisionLogTest, HalfALineAtTheEndIsLeftOut) {
  live("br_0", 50);
  const std::string log = text();
  write(log.substr(0, log.size() * 4 / 5));
  const auto report = check_decisions(path_);
  ASSERT_TRUE(report) << report.error();
  EXPECT_EQ(report->end, "cut");
  EXPECT_EQ(report->difference, std::nullopt);
  EXPECT_GT(report->rounds, 5);
}

TEST_F(DecisionLogTest, WhatIsNoLogIsSaid) {
  EXPECT_THAT(check_decisions("/no/such/log").error(), HasSubstr("/no/such/log"));
  write("{\"some\":1}\n");
  EXPECT_THAT(check_decisions(path_).error(), HasSubstr(":1: not a line of a decision log"));
  live("br_0", 5);
  write(text() + "{\"t\":1}\n");  // behind the end: not read
  EXPECT_TRUE(check_decisions(path_));
  const std::string log = text();
  write(log.substr(0, log.find('\n') + 1) + "hello\n");
  EXPECT_THAT(check_decisions(path_).error(), HasSubstr(":2: not a line of a decision log"));
  EXPECT_THAT(DecisionLog::open({.path = "/no/such/folder/log"}, {}).error(),
              HasSubstr("decision_log.path = /no/such/folder/log: cannot be written"));
}

}  // namespace
}  // namespace balanceroute::proxy
