// What a policy knows after a restart: the past that it is told, as if it had seen it.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "core/random.hpp"
#include "policy/registry.hpp"
#include "policy/router.hpp"

namespace balanceroute {
namespace {

struct Past {
  Request request;
  Tokens length;
  LeaseEnd how;
};

// Answers of 5 to 404 tokens; one in ten is given up, one in five meets its limit.
std::vector<Past> some_past(std::size_t count, std::uint64_t seed = 7) {
  Random random{seed};
  std::vector<Past> past;
  for (std::uint64_t i = 0; i < count; ++i) {
    const Tokens length{5 + static_cast<std::int64_t>(random.below(400))};
    const bool cut = random.below(10) == 0;
    past.push_back({.request = {.id = RequestId{i},
                                .prompt = Tokens{10 + static_cast<std::int64_t>(random.below(1000))},
                                .output_limit = random.below(5) == 0 ? length : kMaxTokens,
                                .prompt_key = 1 + random.below(50)},
                    .length = length,
                    .how = cut ? LeaseEnd::cut : LeaseEnd::finished});
  }
  return past;
}

class Fleet {
 public:
  Fleet(const std::string& policy, const std::string& predictor) : router_{"f", made(policy, predictor), 1} {
    const GroupId group = router_.add_group("g");
    for (std::int32_t rank = 0; rank < 4; ++rank) router_.add_worker(group, "http://host", rank, 8).value();
  }

  void learn(const std::vector<Past>& past) {
    for (const Past& one : past) router_.learn(one.request, one.length, one.how);
  }
  // Serves the same, one request at a time.
  void serve(const std::vector<Past>& past) {
    for (const Past& one : past) {
      ASSERT_TRUE(router_.submit(one.request));
      const auto admitted = router_.round_all();
      ASSERT_EQ(admitted.size(), 1U);
      Lease lease = std::move(admitted[0].lease);
      lease.started();
      for (Tokens age{10}; age < one.length; age += Tokens{10}) lease.progress(age);
      lease.progress(one.length);
      if (one.how == LeaseEnd::finished) lease.finish(one.length);
    }
  }
  [[nodiscard]] Calibration calibration() const { return router_.policy().prediction_report()->calibration; }
  // Scores of requests of several ages on workers that run others.
  std::vector<double> opinions() {
    std::vector<double> scores;
    for (std::uint64_t i = 0; i < 6; ++i) {
      const Request running{.id = RequestId{1'000'000 + i}, .prompt = Tokens{300}, .prompt_key = 1 + i};
      leases_.push_back(router_.adopt(WorkerId{static_cast<std::uint32_t>(i % 4)}, running).value());
      leases_.back().progress(Tokens{static_cast<std::int64_t>(i) * 10 + 1});
    }
    for (const std::int64_t prompt : {10, 200, 900}) {
      const auto explained = router_.explain(GroupId{0}, {.id = RequestId{2'000'000}, .prompt = Tokens{prompt}});
      for (const WorkerScore& worker : explained) scores.push_back(worker.score);
    }
    return scores;
  }

 private:
  static std::unique_ptr<Policy> made(const std::string& name, const std::string& predictor) {
    PolicyParams params{.name = name};
    params.predictor.name = predictor;
    return make_policy(params).value();
  }

  Router router_;
  std::vector<Lease> leases_;
};

struct Case {
  const char* policy;
  const char* predictor;
};

class Learning : public testing::TestWithParam<Case> {};

// Law: a policy that is told its past thinks as the one that lived through it, and otherwise than one without a past.
TEST_P(Learning, IsAsGoodAsHavingSeenIt) {
  const auto past = some_past(2'000);
  Fleet lived{GetParam().policy, GetParam().predictor};
  lived.serve(past);
  Fleet told{GetParam().policy, GetParam().predictor};
  told.learn(past);
  Fleet fresh{GetParam().policy, GetParam().predictor};
  const auto expected = lived.opinions();
  EXPECT_EQ(told.opinions(), expected);
  EXPECT_NE(fresh.opinions(), expected);
}

// Law: from the first decision on, predictions after a restart are as good as they were before it: each one is checked,
// and their score beats that of always saying the mean as it did. Without a past the first hundred requests go
// unforetold.
TEST(LearningTest, KeepsCalibrationOverARestart) {
  const auto past = some_past(5'000);
  const auto next = some_past(1'000, 8);
  Fleet before{"br_h", "survival"};
  before.serve(past);
  Fleet after{"br_h", "survival"};
  after.learn(past);
  after.serve({next.begin(), next.begin() + 1});
  EXPECT_GE(after.calibration().count(), 1) << "the very first one was foretold";
  after.serve({next.begin() + 1, next.end()});
  const Calibration old = before.calibration();
  const Calibration now = after.calibration();
  EXPECT_NEAR(now.brier_score() / now.brier_reference(), old.brier_score() / old.brier_reference(), 0.05);
  EXPECT_NEAR(now.mean_predicted(), now.mean_happened(), 0.03);
  Fleet cold{"br_h", "survival"};
  cold.serve(next);
  EXPECT_LT(cold.calibration().count(), now.count() - 90);
}

INSTANTIATE_TEST_SUITE_P(Policies, Learning,
                         testing::Values(Case{"br_h", "survival"}, Case{"br_h", "exact_match"},
                                         Case{"br_fit", "survival"}),
                         [](const auto& its) { return std::string{its.param.policy} + "_" + its.param.predictor; });

}  // namespace
}  // namespace balanceroute
