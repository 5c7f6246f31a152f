// The exact text of answers and events.
#include "emulator/answer_format.hpp"

#include <gtest/gtest.h>

#include <array>
#include <nlohmann/json.hpp>

namespace balanceroute::emulator {
namespace {

AnswerFormat kChat{{.api = Api::chat}, "r1", 1700, "m"};
AnswerFormat kText{{.api = Api::completions}, "r1", 1700, "m"};
const Prompt kPrompt{.tokens = Tokens{3}, .ids = {7, 8, 9}};

Piece piece(std::int64_t first, std::int64_t last, std::string_view finish_reason = "") {
  return {.first = Tokens{first},
          .last = Tokens{last},
          .opens = first == 1,
          .opens_call = first == 1,
          .finish_reason = finish_reason,
          .prompt = &kPrompt};
}

nlohmann::json event(AnswerFormat& format, const Piece& what) {
  std::string out;
  format.append_piece(out, 0, what, nullptr);
  return nlohmann::json::parse(out.substr(std::string_view{"data: "}.size()));
}

TEST(AnswerFormat, ChatEvents) {
  const std::string head = R"(data: {"id":"chatcmpl-r1","object":"chat.completion.chunk","created":1700,"model":"m",)";
  std::string out;
  kChat.append_opening(out, 1, kPrompt, nullptr);
  EXPECT_EQ(out, head + R"("choices":[{"index":1,"delta":{"role":"assistant","content":""},)"
                        R"("logprobs":null,"finish_reason":null}]})"
                        "\n\n");
  out.clear();
  kChat.append_piece(out, 0, piece(17, 18), nullptr);
  EXPECT_EQ(out, head +
                     R"("choices":[{"index":0,"delta":{"content":" t17 t18"},"logprobs":null,"finish_reason":null}]})"
                     "\n\n");
  out.clear();
  const Usage usage{Tokens{5}, Tokens{18}};
  kChat.append_piece(out, 0, piece(18, 18, "length"), &usage);
  EXPECT_EQ(out, head + R"("choices":[{"index":0,"delta":{"content":" t18"},"logprobs":null,)"
                        R"("finish_reason":"length","stop_reason":null}],)"
                        R"("usage":{"prompt_tokens":5,"total_tokens":23,"completion_tokens":18}})"
                        "\n\n");
  out.clear();
  kChat.append_end(out, {}, usage, true);
  EXPECT_EQ(out, head + R"("choices":[],"usage":{"prompt_tokens":5,"total_tokens":23,"completion_tokens":18}})"
                        "\n\ndata: [DONE]\n\n");
}

TEST(AnswerFormat, CompletionEventsHaveNoRole) {
  std::string out;
  kText.append_opening(out, 0, kPrompt, nullptr);
  EXPECT_EQ(out, "");
  kText.append_piece(out, 0, piece(1, 1, "stop"), nullptr);
  EXPECT_EQ(out, R"(data: {"id":"cmpl-r1","object":"text_completion","created":1700,"model":"m","choices":[{"index":0,)"
                 R"("text":" t1","logprobs":null,"finish_reason":"stop","stop_reason":null}]})"
                 "\n\n");
}

TEST(AnswerFormat, WholeAnswers) {
  const std::array choices{FinishedChoice{piece(1, 2, "stop")}, FinishedChoice{piece(1, 1, "length")}};
  const Usage usage{Tokens{4}, Tokens{3}};
  EXPECT_EQ(kChat.whole(choices, usage, {}),
            R"({"id":"chatcmpl-r1","object":"chat.completion","created":1700,"model":"m","choices":[)"
            R"({"index":0,"message":{"role":"assistant","content":" t1 t2"},"logprobs":null,)"
            R"("finish_reason":"stop","stop_reason":null},)"
            R"({"index":1,"message":{"role":"assistant","content":" t1"},"logprobs":null,)"
            R"("finish_reason":"length","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3}})");
  EXPECT_EQ(kText.whole({choices.data(), 1}, usage, R"({"a": 1})"),
            R"({"id":"cmpl-r1","object":"text_completion","created":1700,"model":"m","choices":[)"
            R"({"index":0,"text":" t1 t2","logprobs":null,"finish_reason":"stop","stop_reason":null}],)"
            R"("usage":{"prompt_tokens":4,"total_tokens":7,"completion_tokens":3},"kv_transfer_params":{"a": 1}})");
}

// Law: a stop without a token is an event all the same, with its word.
TEST(AnswerFormat, TellsThatAnAnswerHasToBeComputedAgain) {
  auto stopped = piece(6, 5, "stop");
  stopped.stop_reason = "recomputed";
  const auto choice = event(kChat, stopped)["choices"][0];
  EXPECT_EQ(choice["delta"]["content"], "");
  EXPECT_EQ(choice["finish_reason"], "stop");
  EXPECT_EQ(choice["stop_reason"], "recomputed");
}

// Law: ids come one for each token, those of the prompt once, where each API has its place for them.
TEST(AnswerFormat, TellsTokenIds) {
  AnswerFormat text{{.api = Api::completions, .token_ids = true}, "r1", 1700, "m"};
  EXPECT_EQ(event(text, piece(1, 2))["choices"][0]["token_ids"], (std::vector{1'000'001, 1'000'002}));
  EXPECT_EQ(event(text, piece(1, 2))["choices"][0]["prompt_token_ids"], (std::vector{7, 8, 9}));
  EXPECT_FALSE(event(text, piece(2, 2))["choices"][0].contains("prompt_token_ids"));
  AnswerFormat chat{{.api = Api::chat, .token_ids = true}, "r1", 1700, "m"};
  std::string role;
  chat.append_opening(role, 0, kPrompt, nullptr);
  EXPECT_EQ(nlohmann::json::parse(role.substr(6))["prompt_token_ids"], (std::vector{7, 8, 9}));
  EXPECT_FALSE(event(chat, piece(1, 1)).contains("prompt_token_ids"));
  const FinishedChoice finished{piece(1, 2, "stop")};
  const auto whole = nlohmann::json::parse(chat.whole({&finished, 1}, {}, {}));
  EXPECT_EQ(whole["prompt_token_ids"], (std::vector{7, 8, 9}));
  EXPECT_EQ(whole["choices"][0]["token_ids"], (std::vector{1'000'001, 1'000'002}));
}

// Law: every token has its probability, in the shape of the API.
TEST(AnswerFormat, TellsLogprobs) {
  AnswerFormat chat{{.api = Api::chat, .logprobs = true}, "r1", 1700, "m"};
  const auto content = event(chat, piece(4, 5))["choices"][0]["logprobs"]["content"];
  ASSERT_EQ(content.size(), 2U);
  EXPECT_EQ(content[1]["token"], " t5");
  AnswerFormat text{{.api = Api::completions, .logprobs = true}, "r1", 1700, "m"};
  const auto logprobs = event(text, piece(9, 10))["choices"][0]["logprobs"];
  EXPECT_EQ(logprobs["tokens"], (std::vector{" t9", " t10"}));
  EXPECT_EQ(logprobs["text_offset"], (std::vector{0, 3}));
  EXPECT_EQ(logprobs["token_logprobs"].size(), 2U);
  EXPECT_EQ(logprobs["top_logprobs"].size(), 2U);
}

// Law: the fragments of a call's arguments make a JSON object together, streamed or not.
TEST(AnswerFormat, CallsAFunction) {
  AnswerFormat chat{{.api = Api::chat, .tool = "f"}, "r1", 1700, "m"};
  const auto first = event(chat, piece(1, 1))["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_EQ(first["function"]["name"], "f");
  EXPECT_EQ(first["id"], "call_r1-0");
  const auto last = event(chat, piece(2, 3, "tool_calls"))["choices"][0]["delta"]["tool_calls"][0];
  EXPECT_FALSE(last.contains("id"));
  const auto joined =
      first["function"]["arguments"].get<std::string>() + last["function"]["arguments"].get<std::string>();
  EXPECT_EQ(nlohmann::json::parse(joined)["text"], " t1 t2 t3");
  const FinishedChoice finished{piece(1, 3, "tool_calls")};
  const auto message = nlohmann::json::parse(chat.whole({&finished, 1}, {}, {}))["choices"][0]["message"];
  EXPECT_EQ(message["tool_calls"][0]["function"]["arguments"], joined);
  EXPECT_EQ(message["tool_calls"][0]["id"], "call_r1-0");
  EXPECT_TRUE(message["content"].is_null());
}

// Law: reasoning has a member of its own, with each engine's name for it.
TEST(AnswerFormat, ThinksAloud) {
  auto thought = piece(1, 2);
  thought.reasoning = true;
  EXPECT_EQ(event(kChat, thought)["choices"][0]["delta"]["reasoning"], " t1 t2");
  AnswerFormat sglang{{.api = Api::chat, .sglang = true}, "r1", 1700, "m"};
  EXPECT_EQ(event(sglang, thought)["choices"][0]["delta"]["reasoning_content"], " t1 t2");
  const FinishedChoice finished{.tokens = piece(1, 3, "stop"), .reasoning = Tokens{2}};
  const auto choice = nlohmann::json::parse(sglang.whole({&finished, 1}, {}, {}))["choices"][0];
  EXPECT_EQ(choice["message"]["reasoning_content"], " t1 t2");
  EXPECT_EQ(choice["message"]["content"], " t3");
  EXPECT_TRUE(choice.contains("matched_stop"));
}

// Law: tokens without numbers are all the same.
TEST(AnswerFormat, NumbersCanBeLeftOut) {
  AnswerFormat plain{{.api = Api::completions, .numbered = false}, "r1", 1700, "m"};
  EXPECT_EQ(event(plain, piece(4, 5))["choices"][0]["text"], " token token");
}

// Law: what a client sent as its request id cannot break the JSON.
TEST(AnswerFormat, NamesAreEscaped) {
  std::string out;
  AnswerFormat{{.api = Api::completions}, "a\"b\xff", 1, "m\\"}.append_piece(out, 0, piece(1, 1), nullptr);
  EXPECT_NE(out.find("\"cmpl-a\\\"b\xef\xbf\xbd\""), std::string::npos) << out;
  EXPECT_NE(out.find(R"("model":"m\\")"), std::string::npos) << out;
}

}  // namespace
}  // namespace balanceroute::emulator
