// Explanations of states that people write.
#include "explain/explanation.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "explain/explanation_report.hpp"
#include "explain/fleet_state_json.hpp"

namespace balanceroute::explain {
namespace {

using nlohmann::json;
using testing::ElementsAre;
using testing::HasSubstr;

// Two workers of 1,000 and 400 tokens; a request of 500 waits.
const std::string kTwo = R"({
  "policy": {"name": "br_0"},
  "groups": [{"name": "g", "workers": [
    {"url": "http://a", "slots": 4, "running": [{"prompt": 900, "generated": 100}]},
    {"url": "http://b", "slots": 4, "running": [{"prompt": 400}]}]}],
  "waiting": [{"request": 7, "prompt": 500}]})";

Explanation explained(const std::string& text) {
  const auto state = read_fleet_state(text, "s.json");
  EXPECT_TRUE(state) << state.error();
  auto found = explain(*state);
  EXPECT_TRUE(found) << found.error();
  return *std::move(found);
}

std::string error_of(const std::string& text) {
  const auto state = read_fleet_state(text, "s.json");
  if (!state) return state.error();
  const auto found = explain(*state);
  return found ? "" : found.error();
}

// Law: scores are the policy's for every worker, and the decision is the one that follows from them.
TEST(Explanation, ScoresAndDecision) {
  const Explanation found = explained(kTwo);
  ASSERT_EQ(found.workers.size(), 2u);
  EXPECT_EQ(found.workers[0].load, Tokens{1000});
  EXPECT_EQ(found.workers[1].margin, Tokens{600});
  ASSERT_EQ(found.requests.size(), 1u);
  EXPECT_THAT(found.requests[0].scores, ElementsAre(-500, 500));  // the imbalance rises by 500, or falls by as much
  ASSERT_EQ(found.admissions.size(), 1u);
  EXPECT_EQ(found.admissions[0].worker, 1u);
  EXPECT_EQ(found.admissions[0].margin, Tokens{600});
  EXPECT_FALSE(found.learns);
}

// Law: text and JSON say it; the JSON has every score.
TEST(Explanation, Reports) {
  const Explanation found = explained(kTwo);
  const std::string text = explanation_text(found);
  EXPECT_THAT(text, HasSubstr("Fleet default, policy br_0."));
  EXPECT_THAT(text, HasSubstr("request 7, 500 prompt tokens: 500 on http://b rank 0, -500 on http://a rank 0"));
  EXPECT_THAT(text, HasSubstr("request 7 on http://b rank 0"));
  const json all = json::parse(explanation_json(found));
  EXPECT_EQ(all["waiting"][0]["scores"], (json{-500.0, 500.0}));
  EXPECT_EQ(all["admissions"][0]["worker"], 1);
  EXPECT_EQ(all["learned"], true);
}

// Law: a policy that learns has learned nothing here, and the text says so.
TEST(Explanation, SaysWhatIsNotLearned) {
  for (const char* policy : {"br_h", "br_fit"}) {
    std::string text = kTwo;
    text.replace(text.find("br_0"), 4, policy);
    EXPECT_THAT(explanation_text(explained(text)), HasSubstr("has learned nothing here"));
  }
}

// Law: a request that no worker could ever take is named, and holds nothing up.
TEST(Explanation, RequestThatFitsNowhere) {
  std::string text = kTwo;
  text.replace(text.find("{\"request\": 7"), 0, R"({"prompt": 1, "sequences": 5}, )");
  const Explanation found = explained(text);
  EXPECT_THAT(found.requests[0].refused.value_or(""), HasSubstr("more sequences than any worker has slots"));
  EXPECT_EQ(found.admissions.size(), 1u);
}

// Law: each member that is not as declared is named with what was expected.
TEST(Explanation, BadStates) {
  EXPECT_THAT(error_of("{"), HasSubstr("s.json"));
  EXPECT_THAT(error_of("{}"), HasSubstr("groups"));
  EXPECT_THAT(error_of(R"({"groups": [{"workers": [{"url": "a", "slots": -1}]}]})"), HasSubstr("slots"));
  EXPECT_THAT(error_of(R"({"groups": [{"workers": [{"url": "a", "slot": 1}]}]})"), HasSubstr("slots"));
  EXPECT_THAT(error_of(R"({"policy": {"name": "br_9"}, "groups": []})"), HasSubstr("br_9"));
  EXPECT_THAT(error_of(R"({"groups": [{"workers": [{"url": "a", "slots": 1}, {"url": "a", "slots": 1}]}]})"),
              HasSubstr("is there twice"));
  EXPECT_THAT(error_of(R"({"groups": [{"workers": [{"url": "a", "slots": 1,
                           "running": [{"prompt": 1}, {"prompt": 1}]}]}]})"),
              HasSubstr("do not hold all that runs there"));
}

}  // namespace
}  // namespace balanceroute::explain
