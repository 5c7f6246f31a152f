// What the events of vLLM and SGLang streams say (engine-protocols 4).
#include "proxy/stream_event.hpp"

#include <gtest/gtest.h>

#include "proxy/event_edit.hpp"

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
  EXPECT_FALSE(read_stream_event(R"({"error":{"message":"out of memory","code":500}})").refusal);
  EXPECT_TRUE(read_stream_event(R"({"error":{"message":"too long","code":400}})").refusal);
  EXPECT_TRUE(read_stream_event(R"({"object":"error","message":"too long","code":400})").refusal);
  EXPECT_FALSE(read_stream_event("{broken").readable);
  EXPECT_TRUE(read_stream_event("").readable);
}

// Law: of a whole answer the same is known as of an event.
TEST(StreamEvent, ReadsAWholeAnswer) {
  EXPECT_EQ(
      read_whole_answer(R"({"id":"x","usage":{"prompt_tokens":3,"completion_tokens":4}})").usage->completion_tokens, 4);
  EXPECT_FALSE(read_whole_answer(R"({"id":"x"})").usage);
  EXPECT_FALSE(read_whole_answer("no json").usage);
  const StreamEvent given_up =
      read_whole_answer(R"({"choices":[{"text":" a","finish_reason":"stop","stop_reason":"recomputed"}]})");
  EXPECT_TRUE(given_up.recomputed);
  EXPECT_EQ(given_up.text, " a");
  EXPECT_EQ(read_whole_answer(R"({"choices":[{"message":{"role":"assistant","content":"b"}}]})").text, "b");
}

// Law: events of the Responses API that bring text or arguments are a token each; its last one ends the stream and has
// the usage of the whole; failures are told by their message.
TEST(StreamEvent, ReadsResponses) {
  EXPECT_EQ(read_stream_event(R"({"type":"response.created","response":{"usage":null}})").tokens, 0);
  for (const char* type :
       {"response.output_text.delta", "response.reasoning_text.delta", "response.function_call_arguments.delta"}) {
    const auto event = read_stream_event(R"({"type":")" + std::string{type} + R"(","delta":" a"})");
    EXPECT_EQ(event.tokens, 1) << type;
    EXPECT_FALSE(event.done);
  }
  EXPECT_EQ(read_stream_event(R"({"type":"response.output_text.done","text":" a b"})").tokens, 0);
  for (const char* type : {"response.completed", "response.incomplete"}) {
    const auto last = read_stream_event(R"({"type":")" + std::string{type} +
                                        R"(","response":{"usage":{"input_tokens":3,"output_tokens":4}}})");
    EXPECT_TRUE(last.done);
    EXPECT_EQ(last.finished, 1);
    ASSERT_TRUE(last.usage);
    EXPECT_EQ(last.usage->prompt_tokens, 3);
    EXPECT_EQ(last.usage->completion_tokens, 4);
  }
  const auto failed = read_stream_event(R"({"type":"response.failed","response":{"error":{"message":"oh"}}})");
  EXPECT_TRUE(failed.error);
  EXPECT_EQ(failed.error_message, "oh");
  EXPECT_EQ(read_stream_event(R"({"type":"error","code":"x","message":"oh"})").error_message, "oh");
}

// Law: events of the Messages API that bring content are a token each; the prompt's size comes with the first, the
// answer's with message_delta, and message_stop is the end.
TEST(StreamEvent, ReadsMessages) {
  const auto start =
      read_stream_event(R"({"type":"message_start","message":{"usage":{"input_tokens":7,"output_tokens":0}}})");
  ASSERT_TRUE(start.usage);
  EXPECT_EQ(start.usage->prompt_tokens, 7);
  const auto delta = [](const std::string& of) {
    return read_stream_event(R"({"type":"content_block_delta","index":0,"delta":{"type":")" + of + R"("}})").tokens;
  };
  EXPECT_EQ(delta("text_delta"), 1);
  EXPECT_EQ(delta("input_json_delta"), 1);
  EXPECT_EQ(delta("signature_delta"), 0);
  EXPECT_EQ(read_stream_event(R"({"type":"ping"})").tokens, 0);
  const auto last =
      read_stream_event(R"({"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":9}})");
  EXPECT_EQ(last.finished, 1);
  EXPECT_FALSE(last.done);
  EXPECT_EQ(last.usage->completion_tokens, 9);
  EXPECT_TRUE(read_stream_event(R"({"type":"message_stop"})").done);
  const auto failed = read_stream_event(R"({"type":"error","error":{"type":"overloaded_error","message":"oh"}})");
  EXPECT_TRUE(failed.error);
  EXPECT_EQ(failed.error_message, "oh");
}

// Law: what an answer consists of is told apart: plain text, the role that opens it, content of other kinds.
TEST(StreamEvent, TellsTextFromOtherContent) {
  const auto delta = [](const std::string& members) {
    return read_stream_event(R"({"choices":[{"index":0,"delta":{)" + members + R"(},"finish_reason":null}]})");
  };
  EXPECT_TRUE(delta(R"("role":"assistant","content":"")").opens);
  EXPECT_FALSE(delta(R"("role":"assistant","content":"x")").opens);
  EXPECT_EQ(delta(R"("content":"x\ny")").text, "x\ny");
  EXPECT_TRUE(delta(R"("reasoning":"x")").other_content);
  EXPECT_TRUE(delta(R"("tool_calls":[{"index":0}])").other_content);
  EXPECT_FALSE(delta(R"("content":"x")").other_content);
}

// Law: the reason of an answer in one piece is read, and what its prompt had cached.
TEST(StreamEvent, ReadsWholeAnswers) {
  const auto whole = read_whole_answer(
      R"({"choices":[{"text":"a","finish_reason":"length"}],)"
      R"("usage":{"prompt_tokens":9,"completion_tokens":1,"prompt_tokens_details":{"cached_tokens":4}}})");
  EXPECT_EQ(whole.finish_reason, "length");
  EXPECT_EQ(whole.usage->cached_tokens, 4);
  const auto other = read_whole_answer(R"({"choices":[{"finish_reason":null}],"usage":{"prompt_tokens":9}})");
  EXPECT_EQ(other.finish_reason, "");
  EXPECT_EQ(other.usage->cached_tokens, std::nullopt);
}

// Law: an event without its usage is the event as it would have come, wherever the usage stands.
TEST(EventEdit, UsageIsTakenOutWithOneComma) {
  const auto without = [](const std::string& json) {
    const std::string event = "data: " + json + "\n\n";
    const std::string out = without_usage(event, std::string_view{event}.substr(6, json.size()));
    return out.substr(6, out.size() - 8);
  };
  EXPECT_EQ(without(R"({"id":"x","usage":{"prompt_tokens":1,"d":{"a":[{}]}}})"), R"({"id":"x"})");
  EXPECT_EQ(without(R"({"id":"x" , "usage" : {"prompt_tokens":1} , "y":1.0})"), R"({"id":"x"  , "y":1.0})");
  EXPECT_EQ(without(R"({"usage":{"prompt_tokens":1},"choices":[]})"), R"({"choices":[]})");
  EXPECT_EQ(without(R"({"usage":{}})"), "{}");
  EXPECT_EQ(without(R"({"usage":null,"id":"x"})"), R"({"usage":null,"id":"x"})");
}

// Law: usage tells the cached tokens of the engine that computed the prompt, in whatever shape the other engine tells
// its own; everything else stays as it was.
TEST(EventEdit, CachedTokensAreThoseOfThePrefillEngine) {
  const auto with = [](const std::string& json, std::optional<std::int64_t> told) {
    const std::string event = "data: " + json + "\n\n";
    const std::string out = with_cached(event, std::string_view{event}.substr(6, json.size()), {.told = told});
    return out.substr(6, out.size() - 8);
  };
  const std::string told = R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens" : 8},"x":1.0}})";
  EXPECT_EQ(with(told, 5), R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens" : 5},"x":1.0}})");
  // What the decode engine calls cached was brought to it.
  EXPECT_EQ(with(told, {}), R"({"usage":{"prompt_tokens":9,"prompt_tokens_details":{"cached_tokens" : 0},"x":1.0}})");
  EXPECT_EQ(with(R"({"usage":{"prompt_tokens":9}})", 5),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":5},"prompt_tokens":9}})");
  EXPECT_EQ(with(R"({"usage":{"prompt_tokens_details":null}})", 5),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":5}}})");
  EXPECT_EQ(with(R"({"usage":{"prompt_tokens_details":{"audio_tokens":0}}})", 5),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":5,"audio_tokens":0}}})");
  EXPECT_EQ(with(R"({"usage":{"prompt_tokens_details":{ }}})", 5),
            R"({"usage":{"prompt_tokens_details":{"cached_tokens":5}}})");
  for (const char* silent : {R"({"usage":{"prompt_tokens":9}})", R"({"usage":{"prompt_tokens_details":null}})"}) {
    EXPECT_EQ(with(silent, {}), silent);
  }
  EXPECT_EQ(with(R"({"usage":{}})", 5), R"({"usage":{"prompt_tokens_details":{"cached_tokens":5}}})");
  EXPECT_EQ(with(R"({"usage":null})", 5), R"({"usage":null})");
}

// Law: what engines tell one another is taken out of an answer; its text may speak of it.
TEST(EventEdit, TransferParametersAreTakenOut) {
  EXPECT_EQ(without_transfer(R"({"id":"x", "kv_transfer_params" : {"a":[1,{}]}, "n":1e0})"), R"({"id":"x", "n":1e0})");
  for (const char* other : {R"({"id":"x","kv_transfer_params":null})", R"({"id":"\"kv_transfer_params\":{}"})",
                            R"({"x":{"kv_transfer_params":{}}})"}) {
    EXPECT_EQ(without_transfer(other), other);
  }
}

}  // namespace
}  // namespace balanceroute::proxy
