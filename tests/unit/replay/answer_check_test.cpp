// Laws of reading answers: what counts as a token, and which answers are not whole.
#include "replay/answer_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <initializer_list>

namespace balanceroute::replay {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string event(std::string_view text, std::string_view reason = "null") {
  return R"({"choices":[{"index":0,"text":")" + std::string{text} + R"(","finish_reason":)" + std::string{reason} +
         "}]}";
}

// The first fault in an answer of these events, or "whole".
std::string judged(std::initializer_list<std::string> events, std::int64_t expected) {
  AnswerCheck check;
  for (const auto& each : events) {
    if (const auto taken = check.take_event(each); !taken) return taken.error().text;
  }
  const auto ended = check.end(Tokens{expected});
  return ended ? "whole" : ended.error().text;
}

TEST(AnswerCheck, NumberedAnswerIsWhole) {
  EXPECT_EQ(judged({event(" t1"), event(" t2"), event(" t3", R"("stop")"), "[DONE]"}, 3), "whole");
}

// Law: an event may carry several tokens, and a chat answer begins with an event without text.
TEST(AnswerCheck, TakesChatAndSeveralTokensAnEvent) {
  AnswerCheck check;
  EXPECT_EQ(check.take_event(R"({"choices":[{"delta":{"role":"assistant","content":""},"finish_reason":null}]})"),
            false);
  EXPECT_EQ(check.take_event(R"({"choices":[{"delta":{"content":" t1 t2"},"finish_reason":null}]})"), true);
  EXPECT_EQ(check.tokens(), Tokens{1});
  EXPECT_EQ(check.take_event(R"({"choices":[{"delta":{"content":" t3"},"finish_reason":"length"}]})"), true);
  EXPECT_EQ(check.take_event(R"({"choices":[],"usage":{"completion_tokens":3}})"), false);
  EXPECT_EQ(check.take_event("[DONE]"), false);
  EXPECT_TRUE(check.end(Tokens{3}));
  EXPECT_EQ(check.tokens(), Tokens{3});
}

TEST(AnswerCheck, LostAndDoubledTokensAreFaults) {
  EXPECT_EQ(judged({event(" t1"), event(" t3")}, 3), "token t1 is followed by t3");
  EXPECT_EQ(judged({event(" t1"), event(" t1")}, 3), "token t1 is followed by t1");
  EXPECT_EQ(judged({event(" t2")}, 3), "token t0 is followed by t2");
  EXPECT_THAT(judged({event(" t1"), event("garbage")}, 3), StartsWith("token t1 is followed by \"garbage"));
  EXPECT_EQ(judged({event(" t1", R"("length")"), "[DONE]"}, 2), "the answer ended at token t1, expected t2");
}

// Law: the words and the length of a real model's answer are its own business.
TEST(AnswerCheck, PlainTextIsNotNumbered) {
  EXPECT_EQ(judged({event("Hello"), event(" t9"), event(".", R"("stop")"), "[DONE]"}, 50), "whole");
  EXPECT_EQ(judged({event(" tea"), event(" time", R"("stop")"), "[DONE]"}, 2), "whole");
}

TEST(AnswerCheck, BrokenStreamsAreFaults) {
  EXPECT_EQ(judged({event(" t1", R"("stop")")}, 1), "the stream ended without [DONE]");
  EXPECT_EQ(judged({}, 1), "the stream ended without [DONE]");
  EXPECT_EQ(judged({"[DONE]"}, 1), "the answer has no finish_reason");
  EXPECT_THAT(judged({"[DONE]", event(" t1")}, 1), StartsWith("an event follows [DONE]"));
  EXPECT_THAT(judged({R"({"error":{"message":"engine died","code":500}})"}, 1), HasSubstr("engine died"));
  EXPECT_THAT(judged({"<html>"}, 1), StartsWith("not a JSON object: \"<html>"));
}

// Law: an answer that says that it failed is told apart from one that nobody can read.
TEST(AnswerCheck, FaultsHaveKinds) {
  EXPECT_EQ(AnswerCheck{}.take_event(R"({"error":{"message":"engine died"}})").error().kind,
            FaultKind::error_in_answer);
  EXPECT_EQ(AnswerCheck{}.take_event("<html>").error().kind, FaultKind::bad_answer);
}

TEST(AnswerCheck, TakesWholeAnswers) {
  AnswerCheck check;
  EXPECT_EQ(check.prompt(), std::nullopt);
  ASSERT_TRUE(check.take_whole(
      R"({"choices":[{"text":" t1 t2","finish_reason":"length"}],"usage":{"prompt_tokens":7,"completion_tokens":2}})"));
  EXPECT_EQ(check.prompt(), Tokens{7});
  EXPECT_TRUE(check.end(Tokens{2}));
  EXPECT_FALSE(check.end(Tokens{3}));
  EXPECT_EQ(check.tokens(), Tokens{2});
  EXPECT_FALSE(AnswerCheck{}.take_whole(R"({"error":{"message":"no"}})"));
}

}  // namespace
}  // namespace balanceroute::replay
