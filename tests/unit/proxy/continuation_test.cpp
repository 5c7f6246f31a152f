// Laws of answers that change workers: the prompt grows by what was generated, the client sees one answer.
#include "proxy/continuation.hpp"

#include <gtest/gtest.h>

#include <string>

namespace balanceroute::proxy {
namespace {

const Continuation kSoFar{.text = " a\n\"b\"", .tokens = 3, .prompt_tokens = 7, .answer_id = "\"first\"", .times = 1};

std::string resumed(const std::string& body, GenerationKind kind, const Continuation& so_far = kSoFar) {
  const auto read = read_generation_body(body, kind);
  EXPECT_TRUE(read) << read.error().message;
  BodyEdit edit{body, *read};
  extend_prompt(edit, *read, kind, so_far);
  shorten_limits(edit, *read, kind, so_far);
  return std::move(edit).apply();
}

bool goes_on(const std::string& body, GenerationKind kind) {
  return can_go_on(*read_generation_body(body, kind), kind);
}

TEST(Continuation, PromptGrowsByWhatWasGenerated) {
  EXPECT_EQ(resumed(R"({"model":"m","prompt":"once \u00e9","max_tokens": 10 ,"min_tokens":2})",
                    GenerationKind::TextCompletion),
            R"({"model":"m","prompt":"once \u00e9 a\n\"b\"","max_tokens": 7 ,"min_tokens":0})");
  EXPECT_EQ(resumed(R"({"messages":[{"role":"user","content":"hi"} ],"model":"m"})", GenerationKind::ChatCompletion),
            R"({"messages":[{"role":"user","content":"hi"} ,{"role":"assistant","content":" a\n\"b\""}],"model":"m",)"
            R"("continue_final_message":true,"add_generation_prompt":false})");
}

// Law: blanks after a value are not part of it.
TEST(Continuation, BlanksAroundThePromptStay) {
  EXPECT_EQ(resumed("{\"messages\" : [{} ] \n ,\"model\":\"m\"}", GenerationKind::ChatCompletion),
            "{\"messages\" : [{} ,{\"role\":\"assistant\",\"content\":\" a\\n\\\"b\\\"\"}] \n ,\"model\":\"m\","
            "\"continue_final_message\":true,\"add_generation_prompt\":false}");
}

// Law: limits are those of the rest; the usual one of text completions counts too.
TEST(Continuation, LimitsAreThoseOfTheRest) {
  EXPECT_EQ(resumed(R"({"prompt":"x","model":"m"})", GenerationKind::TextCompletion),
            R"({"prompt":"x a\n\"b\"","model":"m","max_tokens":13})");
  EXPECT_EQ(resumed(R"({"prompt":"x","model":"m","max_tokens":3})", GenerationKind::TextCompletion),
            R"({"prompt":"x a\n\"b\"","model":"m","max_tokens":1})");
}

TEST(Continuation, WithoutAnInterruptionNothingChanges) {
  const std::string body = R"({"prompt":"x","model":"m","max_tokens":3})";
  EXPECT_EQ(resumed(body, GenerationKind::TextCompletion, {}), body);
}

// Law: only one answer to a prompt of text can be gone on with.
TEST(Continuation, OnlySingleTextAnswersGoOn) {
  EXPECT_TRUE(goes_on(R"({"prompt":"x","model":"m"})", GenerationKind::TextCompletion));
  EXPECT_FALSE(goes_on(R"({"prompt":"x","model":"m","n":2})", GenerationKind::TextCompletion));
  EXPECT_FALSE(goes_on(R"({"prompt":["x"],"model":"m"})", GenerationKind::TextCompletion));
  EXPECT_FALSE(goes_on(R"({"prompt":[1,2],"model":"m"})", GenerationKind::TextCompletion));
  EXPECT_TRUE(goes_on(R"({"messages":[{}],"model":"m"})", GenerationKind::ChatCompletion));
  EXPECT_FALSE(
      goes_on(R"({"messages":[{}],"model":"m","continue_final_message":true})", GenerationKind::ChatCompletion));
}

// Law: later events carry the first id and the usage of the whole answer, and are else as they came.
TEST(Continuation, LaterEventsArePartOfTheOneAnswer) {
  const std::string json = R"({"id": "second", "x":1.0,"choices":[{"delta":{"content":"c"},"finish_reason":null}],)"
                           R"("usage":{"prompt_tokens":10,"total_tokens":15, "completion_tokens":5}})";
  const std::string event = "data: " + json + "\n\n";
  EXPECT_EQ(as_part_of(event, std::string_view{event}.substr(6, json.size()), kSoFar),
            "data: "
            R"({"id": "first", "x":1.0,"choices":[{"delta":{"content":"c"},"finish_reason":null}],)"
            R"("usage":{"prompt_tokens":7,"total_tokens":15, "completion_tokens":8}})"
            "\n\n");
}

TEST(Continuation, WholeAnswersHaveAllOfTheText) {
  EXPECT_EQ(as_whole_of(R"({"id":"x","choices":[{"index":0,"text":"c","finish_reason":"stop"}]})", kSoFar),
            R"({"id":"x","choices":[{"index":0,"text":" a\n\"b\"c","finish_reason":"stop"}]})");
  EXPECT_EQ(as_whole_of(R"({"choices":[{"message":{"role":"assistant","content":""}}],)"
                        R"("usage":{"prompt_tokens":10,"completion_tokens":1,"total_tokens":11}})",
                        kSoFar),
            R"({"choices":[{"message":{"role":"assistant","content":" a\n\"b\""}}],)"
            R"("usage":{"prompt_tokens":7,"completion_tokens":4,"total_tokens":11}})");
}

TEST(Continuation, LastEventLosesItsEndOnly) {
  const std::string event =
      "data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":\"stop\",\"stop_reason\":\"recomputed\"}]}\n\n";
  EXPECT_EQ(without_end(event, std::string_view{event}.substr(6, event.size() - 8)),
            "data: {\"choices\":[{\"text\":\"x\",\"finish_reason\":null,\"stop_reason\":null}]}\n\n");
}

}  // namespace
}  // namespace balanceroute::proxy
