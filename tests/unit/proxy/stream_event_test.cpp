// What the events of vLLM and SGLang streams say (engine-protocols 4).
#include "proxy/stream_event.hpp"

#include <gtest/gtest.h>

namespace balanceroute::proxy {
namespace {

TEST(StreamEvent, CountsTokensByContentOrByTokenIds) {
  EXPECT_EQ(read_stream_event(R"({"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})").tokens, 0);
  EXPECT_EQ(read_stream_event(R"({"choices":[{"index":0,"delta":{"content":"a"}}]})").tokens, 1);
  EXPECT_EQ(
      read_stream_event(R"({"choices":[{"delta":{"reasoning_content":"a"}},{"delta":{"reasoning":"b"}}]})").tokens, 2);
  EXPECT_EQ(read_stream_event(R"({"choices":[{"delta":{"tool_calls":[{"index":0}]}}]})").tokens, 1);
  EXPECT_EQ(read_stream_event(R"({"choices":[{"index":0,"text":"a"}]})").tokens, 1);
  EXPECT_EQ(read_stream_event(R"({"choices":[{"index":0,"text":"abc","token_ids":[1,2,3]}]})").tokens, 3);
}

TEST(StreamEvent, KnowsEndsUsageAndErrors) {
  const StreamEvent last = read_stream_event(R"({"choices":[{"delta":{},"finish_reason":"stop"}],"usage":null})");
  EXPECT_EQ(last.finished, 1);
  EXPECT_FALSE(last.usage);
  const StreamEvent usage =
      read_stream_event(R"({"choices":[],"usage":{"prompt_tokens":7,"total_tokens":12,"completion_tokens":5}})");
  EXPECT_TRUE(usage.usage_only);
  EXPECT_EQ(usage.usage->prompt_tokens, 7);
  EXPECT_EQ(usage.usage->completion_tokens, 5);
  const StreamEvent continuous =
      read_stream_event(R"({"choices":[{"delta":{"content":"a"}}],"usage":{"prompt_tokens":7,"completion_tokens":1}})");
  EXPECT_FALSE(continuous.usage_only);
  EXPECT_TRUE(continuous.usage);
  EXPECT_TRUE(read_stream_event("[DONE]").done);
  EXPECT_EQ(read_stream_event(R"({"error":{"message":"out of memory"}})").error_message, "out of memory");
  EXPECT_EQ(read_stream_event(R"({"object":"error","message":"flat"})").error_message, "flat");
  EXPECT_FALSE(read_stream_event("{broken").readable);
  EXPECT_TRUE(read_stream_event("").readable);
}

TEST(StreamEvent, ReadsTheUsageOfAWholeAnswer) {
  EXPECT_EQ(read_usage(R"({"id":"x","usage":{"prompt_tokens":3,"completion_tokens":4}})")->completion_tokens, 4);
  EXPECT_FALSE(read_usage(R"({"id":"x"})"));
  EXPECT_FALSE(read_usage("no json"));
}

}  // namespace
}  // namespace balanceroute::proxy
