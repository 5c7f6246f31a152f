// The exact text of answers and events.
#include "emulator/answer_format.hpp"

#include <gtest/gtest.h>

#include <array>

namespace balanceroute::emulator {
namespace {

const AnswerFormat kChat{Api::chat, "r1", 1700, "m"};
const AnswerFormat kText{Api::completions, "r1", 1700, "m"};

TEST(AnswerFormat, ChatEvents) {
  const std::string head = R"(data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700,"model":"m",)";
  std::string out;
  kChat.append_role(out, 1, nullptr);
  EXPECT_EQ(out, head + R"("choices":[{"index":1,"delta":{"role":"assistant","content":""},)"
                        R"("logprobs":null,"finish_reason":null}]})"
                        "\n\n");
  out.clear();
  kChat.append_token(out, 0, Tokens{17}, "", nullptr);
  EXPECT_EQ(out, head + R"("choices":[{"index":0,"delta":{"content":" t17"},"logprobs":null,"finish_reason":null}]})"
                        "\n\n");
  out.clear();
  const Usage usage{Tokens{5}, Tokens{18}};
  kChat.append_token(out, 0, Tokens{18}, "length", &usage);
  EXPECT_EQ(out, head + R"("choices":[{"index":0,"delta":{"content":" t18"},"logprobs":null,)"
                        R"("finish_reason":"length","stop_reason":null}],)"
                        R"("usage":{"prompt_tokens":5,"total_tokens":23,"completion_tokens":18}})"
                        "\n\n");
  out.clear();
  kChat.append_usage(out, usage);
  AnswerFormat::append_done(out);
  EXPECT_EQ(out, head + R"("choices":[],"usage":{"prompt_tokens":5,"total_tokens":23,"completion_tokens":18}})"
                        "\n\ndata: [DONE]\n\n");
}

TEST(AnswerFormat, CompletionEventsHaveNoRole) {
  std::string out;
  kText.append_role(out, 0, nullptr);
  EXPECT_EQ(out, "");
  kText.append_token(out, 0, Tokens{1}, "stop", nullptr);
  EXPECT_EQ(out, R"(data: {"id":"cmpl-r1","object":"text_completion","created":1700,"model":"m","choices":[{"index":0,)"
                 R"("text":" t1","logprobs":null,"finish_reason":"stop","stop_reason":null}]})"
                 "\n\n");
}

TEST(AnswerFormat, WholeAnswers) {
  const std::array choices{FinishedChoice{" t1 t2", "stop"}, FinishedChoice{" t1", "length"}};
  const Usage usage{Tokens{4}, Tokens{3}};
  EXPECT_EQ(kChat.whole(choices, usage),
            R"({"id":"chatcmpl-r1","object":"chat.completion","created":1700,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":" t1 t2"},"logprobs":null,)"
            R"("finish_reason":"stop","stop_reason":null},)"
            R"({"index":1,"message":{"role":"assistant","content":" t1"},"logprobs":null,)"
            R"("finish_reason":"length","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3}})");
  EXPECT_EQ(kText.whole({choices.data(), 1}, usage),
            R"({"id":"cmpl-r1","object":"text_completion","created":1700,"model":"m","choices":[)"
            R"({"index":0,"text":" t1 t2","logprobs":null,"finish_reason":"stop","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3}})");
}

// Law: what a client sent as its request id cannot break the JSON.
TEST(AnswerFormat, NamesAreEscaped) {
  std::string out;
  AnswerFormat{Api::completions, "a\"b\xff", 1, "m\\"}.append_token(out, 0, Tokens{1}, "", nullptr);
  EXPECT_NE(out.find("\"cmpl-a\\\"b\xef\xbf\xbd\""), std::string::npos) << out;
  EXPECT_NE(out.find(R"("model":"m\\")"), std::string::npos) << out;
}

}  // namespace
}  // namespace balanceroute::emulator
